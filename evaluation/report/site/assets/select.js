// Which items are shown, in which order: typed arrays, one number an item and column.
eqforge.select = (() => {
  "use strict";
  const { load, bytesOf } = eqforge;
  let table = "";
  let index = null;
  const columns = new Map();
  let searched = { q: "", hits: null };

  async function open(name) {
    table = name;
    index = await load(`${name}/index`);
    return index;
  }

  const nameOf = (number) => (number.group ? `${number.group}: ${number.title}` : number.title);

  async function column(kind, place, make) {
    const name = `${table}/${kind}/${place}`;
    if (!columns.has(name)) columns.set(name, make(await load(name)));
    return columns.get(name);
  }

  const ARRAYS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

  function facet(place) {
    return column("facets", place, (data) => {
      const flat = new ARRAYS[data.bytes](bytesOf(data.data));
      const starts = data.starts ? new Uint32Array(bytesOf(data.starts)) : null;
      return { flat, starts };
    });
  }

  function numbers(place) {
    return column("numbers", place, (data) => new Float32Array(bytesOf(data)));
  }

  // Returns the values of a facet that an item has.
  function valuesOf(found, place, item) {
    const { values } = index.facets[place];
    const own = found.starts ? found.flat.subarray(found.starts[item], found.starts[item + 1]) : [found.flat[item]];
    return Array.from(own, (number) => values[number]).filter((value) => value !== undefined);
  }

  function keepFacet(kept, found, wanted) {
    for (let item = 0; item < kept.length; item++) {
      if (!kept[item]) continue;
      const [start, stop] = found.starts ? [found.starts[item], found.starts[item + 1]] : [item, item + 1];
      let has = 0;
      for (let place = start; place < stop && !has; place++) has = wanted.has(found.flat[place]) ? 1 : 0;
      kept[item] = has;
    }
  }

  function keepNumbers(kept, found, least, most) {
    // NaN, which stands for no number, is neither above nor below a limit.
    // The numbers are of 32 bits, so a limit is compared as one: 0.3 is at most 0.3.
    const [low, high] = [Math.fround(least), Math.fround(most)];
    for (let item = 0; item < kept.length; item++) {
      if (!(found[item] >= low && found[item] <= high)) kept[item] = 0;
    }
  }

  async function search(q) {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    if (searched.q === q) return searched.hits;
    const hits = new Uint8Array(index.rows);
    for (let chunk = 0; chunk * index.search_chunk < index.rows; chunk++) {
      const texts = await load(`${table}/texts/${chunk}`);
      texts.forEach((text, place) => {
        hits[chunk * index.search_chunk + place] = words.every((word) => text.includes(word)) ? 1 : 0;
      });
    }
    searched = { q, hits };
    return hits;
  }

  const placeOf = (title) => index.facets.findIndex((each) => each.title === title);
  const numberOf = (title) => index.numbers.findIndex((each) => nameOf(each) === title);

  async function chosen(state) {
    const kept = new Uint8Array(index.rows).fill(1);
    for (const [title, values] of state.facets) {
      const place = placeOf(title);
      const known = place < 0 ? [] : index.facets[place].values;
      const wanted = new Set(values.map((value) => known.indexOf(value)));
      if (place < 0) kept.fill(0);
      else keepFacet(kept, await facet(place), wanted);
    }
    for (const title of new Set([...state.least.keys(), ...state.most.keys()])) {
      const place = numberOf(title);
      const limits = [state.least.get(title) ?? -Infinity, state.most.get(title) ?? Infinity];
      if (place < 0) kept.fill(0);
      else keepNumbers(kept, await numbers(place), ...limits);
    }
    if (state.q) {
      const hits = await search(state.q);
      for (let item = 0; item < kept.length; item++) kept[item] &= hits[item];
    }
    return sorted(state.sort, placesOf(kept));
  }

  function placesOf(kept) {
    let count = 0;
    for (const each of kept) count += each;
    const places = new Uint32Array(count);
    for (let item = 0, next = 0; item < kept.length; item++) if (kept[item]) places[next++] = item;
    return places;
  }

  async function sorted(sort, places) {
    const falls = sort.startsWith("-");
    const place = numberOf(falls ? sort.slice(1) : sort);
    if (!sort || place < 0) return places;
    const found = await numbers(place);
    const sign = falls ? -1 : 1;
    // What has no number comes last, either way; equal numbers stay in the order of the ids.
    return places.sort((a, b) => {
      const [x, y] = [found[a], found[b]];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return sign * (x - y) || a - b;
    });
  }

  async function item(place) {
    const items = await load(`${table}/items/${Math.floor(place / index.chunk)}`);
    return items[place % index.chunk];
  }

  async function rows(place) {
    const found = await load(`${table}/rows/${Math.floor(place / index.chunk)}`);
    return found[place % index.chunk];
  }

  // Returns the place of an item by its id, -1 where there is none.
  async function find(id) {
    const near = index.sorted ? nearest(id) : -1;
    if (near >= 0) {
      const items = await load(`${table}/items/${near}`);
      const place = items.findIndex((each) => each.id === id);
      if (place >= 0) return near * index.chunk + place;
    }
    for (let chunk = 0; chunk * index.chunk < index.rows; chunk++) {
      const items = await load(`${table}/items/${chunk}`);
      const place = items.findIndex((each) => each.id === id);
      if (place >= 0) return chunk * index.chunk + place;
    }
    return -1;
  }

  // Returns the last file of items that begins at or before an id.
  function nearest(id) {
    let [low, high] = [0, index.starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (index.starts[middle] <= id) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  // Returns what each model says of an item: its verdict and margin.
  async function verdicts(place) {
    return Promise.all(index.models.map(async (model) => ({
      name: model.name,
      verdict: valuesOf(await facet(model.facet), model.facet, place)[0] || "",
      margin: (await numbers(model.number))[place],
      share: model.share,
    })));
  }

  return { open, chosen, item, rows, find, facet, numbers, valuesOf, verdicts, nameOf, get index() { return index; } };
})();
