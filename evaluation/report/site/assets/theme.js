// The theme: the system's, or the one that was chosen here. Runs before the page is drawn.
(() => {
  "use strict";
  const KEY = "eqforge-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");

  // A page on disk may be refused its storage; the choice is then forgotten, and that is all.
  function remembered() {
    try { return localStorage.getItem(KEY); } catch { return null; }
  }

  function remember(theme) {
    try { localStorage.setItem(KEY, theme); } catch { /* see above */ }
  }

  function apply(theme) {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = theme === "dark" ? "Light" : "Dark";
  }

  const now = () => remembered() || (system.matches ? "dark" : "light");
  apply(now());
  system.addEventListener("change", () => apply(now()));
  document.addEventListener("DOMContentLoaded", () => {
    apply(now());
    document.getElementById("theme").addEventListener("click", () => {
      const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      remember(other);
      apply(other);
    });
  });
})();
