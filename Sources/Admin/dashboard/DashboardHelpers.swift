/// What the scripts of all pages have in common: how numbers are written, how rows of tables are made, and how `/stats` is asked.
let dashboardHelpers = #"""
    "use strict";
    const byId = id => document.getElementById(id);
    const interval = 2000;

    const count = n => n.toLocaleString("en").replace(/,/g, "\u202f");
    const percent = r => r === null ? "–" : (r * 100).toFixed(r >= 0.9995 || r === 0 ? 0 : 1) + " %";
    function sized(bytes) {
      const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
      let i = 0;
      while (bytes >= 1024 && i < units.length - 1) { bytes /= 1024; i++; }
      return [bytes.toFixed(i === 0 || bytes >= 100 ? 0 : 1), units[i]];
    }
    const size = bytes => sized(bytes).join(" ");
    function span(seconds) {
      const d = Math.floor(seconds / 86400), h = Math.floor(seconds / 3600) % 24;
      const m = Math.floor(seconds / 60) % 60, s = seconds % 60;
      return d ? `${d} d ${h} h` : h ? `${h} h ${m} min` : m ? `${m} min ${s} s` : `${s} s`;
    }

    const text = (id, value) => { byId(id).textContent = value; };
    function big(id, [value, unit]) {
      const small = document.createElement("small");
      small.textContent = unit;
      byId(id).replaceChildren(value, small);
    }
    function row(cells, kind = "td") {
      const line = document.createElement("tr");
      for (const cell of cells) {
        const box = document.createElement(kind);
        box.append(cell);
        line.append(box);
      }
      return line;
    }
    const units = { count, bytes: size, bytesPerSecond: bytes => size(bytes) + "/s", seconds: span, ratio: percent };
    function shape(name, attributes) {
      const node = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const key in attributes) node.setAttribute(key, attributes[key]);
      return node;
    }
    const since = time => span(Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000)));
    async function ask(path) {
      const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(answer.status);
      return answer.json();
    }
    """#
