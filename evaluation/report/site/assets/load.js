// Data comes in scripts that call eqforge.take: a page on disk may read nothing else.
window.eqforge = (() => {
  "use strict";
  const HELD = 24; // so many files of data are kept; more would fill the memory of the tab
  const held = new Map();
  const waiting = new Map();

  function take(name, value) {
    const promised = waiting.get(name);
    if (promised) promised.value = value;
  }

  // Returns a promise of what a file of data says; the files that were asked for last are kept.
  function load(name) {
    if (held.has(name)) {
      const found = held.get(name);
      held.delete(name);
      held.set(name, found);
      return found;
    }
    const found = fetched(name);
    held.set(name, found);
    found.catch(() => held.delete(name));
    if (held.size > HELD) held.delete(held.keys().next().value);
    return found;
  }

  function fetched(name) {
    return new Promise((resolve, reject) => {
      const promised = {};
      waiting.set(name, promised);
      const script = document.createElement("script");
      const end = (settle, value) => {
        waiting.delete(name);
        script.remove();
        settle(value);
      };
      script.src = `data/${name.split("/").map(encodeURIComponent).join("/")}.js`;
      script.onload = () => end(resolve, promised.value);
      script.onerror = () => end(reject, new Error(`data/${name}.js cannot be read`));
      document.head.append(script);
    });
  }

  function bytesOf(base64) {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)).buffer;
  }

  return { take, load, bytesOf };
})();
