"use strict";
(() => {
  const form = document.getElementById("filters"), table = document.getElementById("book");
  const body = table.tBodies[0], count = document.getElementById("count"), nothing = document.getElementById("nothing");
  const lists = ["engine", "layer", "mechanism", "workload", "cpu", "machine"];
  const rows = [...body.rows].map((row, order) => ({
    row, order, figures: JSON.parse(row.dataset.figures), text: row.textContent.toLowerCase(),
    value: row.querySelector(".value"), interval: row.querySelector(".cost .note"), bar: row.querySelector(".bar"),
    verdict: row.querySelector(".verdict .word"), reason: row.querySelector(".value").textContent,
  }));
  for (const each of rows) if (each.figures.cpu) each.reason = "not measured";

  const field = name => form.elements[name];
  const sorts = [...field("sort").options].map(each => each.value);

  function read() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const each of form.querySelectorAll("[name]")) {
      const value = wanted.get(each.name) || (each.name === "metric" ? "cpu" : "");
      each.value = value;
      if (each.value !== value) each.value = each.name === "metric" ? "cpu" : "";
    }
  }

  function write() {
    const wanted = new URLSearchParams();
    for (const each of form.querySelectorAll("[name]"))
      if (each.value && !(each.name === "metric" && each.value === "cpu")) wanted.set(each.name, each.value);
    history.replaceState(null, "", wanted.size ? "#" + wanted : location.pathname + location.search);
  }

  function apply() {
    const metric = field("metric").value, sort = field("sort").value, verdict = field("verdict").value;
    const words = field("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    const most = Math.max(...rows.map(each => each.figures[metric] ? each.figures[metric][3] : 0), 1e-9);
    let shown = 0;
    for (const each of rows) {
      const figure = each.figures[metric];
      each.value.textContent = figure ? figure[0] : each.reason;
      each.interval.textContent = figure ? figure[1] : "";
      each.verdict.textContent = figure ? figure[2] : "no figure";
      each.value.parentNode.title = figure ? figure[5] + (figure[4] ? ": " + figure[4] : "") : "";
      each.bar.style.width = figure ? Math.max(0, Math.log1p(figure[3]) / Math.log1p(most)) * 100 + "%" : "0";
      each.share = figure ? figure[3] : null;
      const fits = lists.every(name => !field(name).value || each.row.dataset[name] === field(name).value)
        && (!verdict || (figure ? figure[2] : "none") === verdict) && words.every(word => each.text.includes(word));
      each.row.hidden = !fits;
      shown += fits;
    }
    const key = sort.replace("-", ""), sign = sort.startsWith("-") ? -1 : 1;
    const order = (one, other) => {
      if (key === "cost") {
        // Cells without this figure come last in both directions.
        if (one.share === null || other.share === null) return (one.share === null) - (other.share === null) || one.order - other.order;
        return sign * (one.share - other.share) || one.order - other.order;
      }
      return key ? one.row.dataset[key].localeCompare(other.row.dataset[key]) || one.order - other.order : one.order - other.order;
    };
    body.append(...[...rows].sort(order).map(each => each.row));
    for (const each of table.querySelectorAll("button[data-sort]")) {
      const mine = each.dataset.sort === key;
      if (mine) each.closest("th").setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      else each.closest("th").removeAttribute("aria-sort");
    }
    count.textContent = shown === rows.length ? `${shown} cells` : `${shown} of ${rows.length} cells`;
    nothing.hidden = shown > 0;
    table.hidden = shown === 0;
  }

  const change = () => { apply(); write(); };
  form.addEventListener("input", change);
  form.addEventListener("reset", event => {
    event.preventDefault();
    for (const each of form.querySelectorAll("[name]")) each.value = each.name === "metric" ? "cpu" : "";
    change();
  });
  form.addEventListener("submit", event => event.preventDefault());
  table.tHead.addEventListener("click", event => {
    const asked = event.target.closest("button[data-sort]");
    if (!asked) return;
    const name = asked.dataset.sort, other = "-" + name;
    field("sort").value = field("sort").value === name && sorts.includes(other) ? other : name;
    change();
  });
  addEventListener("hashchange", () => { read(); apply(); });
  form.hidden = false;
  read();
  apply();
})();
