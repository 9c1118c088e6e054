// The distributions of the first page, drawn by uPlot, with the limits as lines.
(() => {
  "use strict";
  const HEIGHT = 130;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function limits(chart) {
    return (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.strokeStyle = colour("--bad");
      ctx.lineWidth = 2 * devicePixelRatio;
      ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      for (const { value } of chart.limits) {
        const x = plot.valToPos(value, "x", true);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    };
  }

  function draw(figure, chart) {
    const box = figure.querySelector(".plot");
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    // A column stands between two edges, so the last count is drawn twice.
    const columns = ({ counts }) => [...counts, counts.at(-1)];
    const kinds = [[chart, "--accent"], ...(chart.refused ? [[chart.refused, "--bad"]] : [])];
    const data = [chart.edges, ...kinds.map(([kind]) => columns(kind))];
    const near = (ticks) => ticks.map((tick) => tick.toLocaleString("en", { maximumSignificantDigits: 4 }));
    const options = {
      width: Math.max(200, box.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false } },
      axes: [{ ...axis, space: 60, size: 24, values: (_, ticks) => near(ticks) }, { ...axis, size: 44, space: 26, values: (_, ticks) => ticks.map((tick) => tick.toLocaleString("en", { notation: "compact" })) }],
      series: [{}, ...kinds.map(([, name]) => ({ stroke: colour(name), fill: colour(`${name}-soft`), paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }))],
      hooks: { draw: [limits(chart)] },
    };
    box.replaceChildren();
    new uPlot(options, data, box);
  }

  // The chart in words.
  function note(figure, chart) {
    const said = [range(chart, chart.refused ? "kept" : "values")];
    if (chart.refused) said.push(range(chart.refused, "rejected by this limit"));
    for (const { label, value } of chart.limits) said.push(`limit ${label.replaceAll("_", " ")} ${short(value)}`);
    if (chart.missing) said.push(`${chart.missing.toLocaleString("en")} without a value`);
    if (chart.note) said.push(chart.note);
    const line = figure.querySelector(".note") || document.createElement("p");
    line.className = "note";
    line.textContent = said.join("; ");
    figure.append(line);
  }

  function range({ counts, least, most }, what) {
    const total = counts.reduce((sum, count) => sum + count, 0);
    return `${total.toLocaleString("en")} ${what}, ${short(least)} to ${short(most)}`;
  }

  const short = (value) => Number(value.toPrecision(4)).toString();

  async function start() {
    const figures = Array.from(document.querySelectorAll("[data-chart]"));
    if (!figures.length) return;
    const charts = await eqforge.load("charts");
    const all = () => figures.forEach((figure) => draw(figure, charts[figure.dataset.chart]));
    figures.forEach((figure) => note(figure, charts[figure.dataset.chart]));
    all();
    new MutationObserver(all).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    let later = 0;
    addEventListener("resize", () => { clearTimeout(later); later = setTimeout(all, 150); });
  }

  start();
})();
