"use strict";
(() => {
  const NARROW = 560; // on narrower charts, the names beside them take less room
  const { config, charts } = JSON.parse(document.getElementById("specs").textContent);

  // --- tooltips: text only, never markup -------------------------------------------------------
  const tip = document.getElementById("tip");
  function showTip(_handler, event, _item, value) {
    if (value === null || value === undefined || value === "") {
      tip.hidden = true;
      return;
    }
    tip.replaceChildren(
      ...Object.entries(value).map(([title, text]) => {
        const line = document.createElement("div");
        if (title) {
          const name = document.createElement("span");
          name.textContent = title;
          line.append(name, " ");
        }
        const strong = document.createElement("bdi");
        strong.textContent = text;
        line.append(strong);
        return line;
      }),
    );
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, room))}px`;
    tip.style.top = `${Math.max(8, event.clientY - tip.offsetHeight - 12)}px`;
  }

  // --- charts ----------------------------------------------------------------------------------
  const drawn = [...document.querySelectorAll("[data-chart]")].map((place) => {
    const narrow = place.clientWidth < NARROW;
    const axisY = { ...config.axisY, labelLimit: narrow ? 120 : 260 };
    return window.vegaEmbed(place, charts[place.dataset.chart], {
      actions: false,
      ast: true, // expressions are interpreted, so the page needs no eval
      config: { ...config, axisY },
      defaultStyle: false,
      renderer: "svg",
      tooltip: showTip,
    });
  });
  Promise.all(drawn).then(
    () => document.documentElement.classList.add("drawn"),
    (problem) => console.error(problem),
  );

  // --- tables to search and to sort --------------------------------------------------------------
  document.querySelectorAll("table.sortable").forEach((table) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const headings = [...table.tHead.rows[0].cells];

    const search = document.querySelector(`[aria-controls="${table.id}"]`);
    const found = search.closest(".search").querySelector("[role=status]");
    const texts = rows.map((row) => row.textContent.toLocaleLowerCase());
    search.addEventListener("input", () => {
      const words = search.value.trim().toLocaleLowerCase().split(/\s+/);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !words.every((word) => texts[place].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      found.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
    });

    function sortKey(row, column, numeric) {
      const key = row.cells[column].dataset.key;
      if (key === undefined) return null;
      return numeric ? Number(key.replace("inf", "Infinity")) : key;
    }
    function sort(column) {
      const heading = headings[column];
      const numeric = heading.classList.contains("number");
      const first = numeric ? "descending" : "ascending";
      const second = numeric ? "ascending" : "descending";
      const order = heading.getAttribute("aria-sort") === first ? second : first;
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const keyed = rows.map((row) => [sortKey(row, column, numeric), row]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null); // empty cells come last
        return sign * (numeric ? a - b || 0 : a.localeCompare(b, "en", { numeric: true }));
      });
      body.append(...keyed.map(([, row]) => row));
    }
    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => sort(column));
    });
  });
})();
