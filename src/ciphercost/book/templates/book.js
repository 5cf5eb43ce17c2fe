"use strict";
(() => {
  const form = document.getElementById("filters"), table = document.getElementById("book");
  const choose = document.getElementById("choose");
  const body = table.tBodies[0], count = document.getElementById("count"), nothing = document.getElementById("nothing");
  const lists = ["engine", "layer", "mechanism", "workload", "cpu", "machine"];
  const axes = [...table.querySelectorAll(".axis")];
  const rows = [...body.rows].map((row, order) => ({
    row, order, figures: JSON.parse(row.dataset.figures), text: row.textContent.toLowerCase(),
    value: row.querySelector(".value"), interval: row.querySelector(".interval"), note: row.querySelector(".cost .note"),
    bar: row.querySelector(".bar"), verdict: row.querySelector(".verdict .word"), reason: row.querySelector(".value").textContent,
  }));
  for (const each of rows) if (each.figures.cpu) each.reason = "not measured";

  const field = name => form.elements[name];
  const sorts = [...field("sort").options].map(each => each.value);
  const named = of => of ? [...of.querySelectorAll("[name]")] : [];

  // ── the answer

  const answers = [...document.querySelectorAll(".answer")];
  const usual = { metric: "cpu" };
  if (choose) {
    usual.server = choose.elements.server.value;
    usual.size = choose.elements.size.value;
  }

  function set(select, value, otherwise) {
    select.value = value;
    if (select.value !== value) select.value = otherwise;
  }

  function offer(wanted) {
    // The mechanisms that were measured on this server.
    const select = choose.elements.with;
    const known = answers.filter(each => each.dataset.server === choose.elements.server.value).map(each => each.dataset.with);
    select.replaceChildren(...known.map(each => new Option(each, each)));
    usual.with = known[0];
    set(select, wanted, known[0]);
  }

  function answer() {
    if (!choose) return;
    const { server, with: mechanism, size } = choose.elements;
    for (const each of answers) {
      each.hidden = each.dataset.server !== server.value || each.dataset.with !== mechanism.value;
      for (const at of each.querySelectorAll("[data-size]")) at.hidden = at.dataset.size !== size.value;
    }
    size.disabled = !answers.some(each => !each.hidden && each.querySelector("[data-size]"));
  }

  // ── the address

  function read() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (choose) {
      set(choose.elements.server, wanted.get("server") || usual.server, usual.server);
      set(choose.elements.size, wanted.get("size") || usual.size, usual.size);
      offer(wanted.get("with"));
    }
    for (const each of named(form)) set(each, wanted.get(each.name) || usual[each.name] || "", usual[each.name] || "");
  }

  function write() {
    const wanted = new URLSearchParams();
    for (const each of [...named(choose), ...named(form)])
      if (each.value && each.value !== usual[each.name]) wanted.set(each.name, each.value);
    history.replaceState(null, "", wanted.size ? "#" + wanted : location.pathname + location.search);
  }

  // ── the table

  function apply() {
    const metric = field("metric").value, sort = field("sort").value, verdict = field("verdict").value;
    const words = field("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const each of axes) {
      each.hidden = each.dataset.metric !== metric;
      if (!each.hidden) table.style.setProperty("--lines", each.dataset.lines);
    }
    let shown = 0;
    for (const each of rows) {
      const figure = each.figures[metric], bar = figure ? figure.bar : [];
      each.value.textContent = figure ? figure.cost : each.reason;
      each.interval.textContent = figure ? `(${figure.interval})` : "";
      each.note.textContent = figure ? figure.levels : "";
      each.verdict.textContent = figure ? figure.verdict : "no figure";
      each.value.parentNode.title = figure ? figure.name : "";
      each.bar.hidden = !bar.length;
      if (bar.length) {
        const [fill, reach] = each.bar.children;
        const ends = [bar[1], bar[2]].sort((one, other) => one - other);
        fill.style.width = `${bar[0]}%`;
        reach.style.left = `${ends[0]}%`;
        reach.style.width = `${ends[1] - ends[0]}%`;
      }
      each.size = figure ? figure.size : null;
      const fits = lists.every(name => !field(name).value || each.row.dataset[name] === field(name).value)
        && (!verdict || (figure ? figure.verdict : "none") === verdict) && words.every(word => each.text.includes(word));
      each.row.hidden = !fits;
      shown += fits;
    }
    const key = sort.replace("-", ""), sign = sort.startsWith("-") ? -1 : 1;
    const order = (one, other) => {
      if (key === "cost") {
        // Cells without this figure come last in both directions.
        if (one.size === null || other.size === null) return (one.size === null) - (other.size === null) || one.order - other.order;
        return sign * (one.size - other.size) || one.order - other.order;
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
    for (const each of named(form)) each.value = usual[each.name] || "";
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
  if (choose) {
    choose.addEventListener("input", event => {
      if (event.target.name === "server") offer(choose.elements.with.value);
      answer();
      write();
    });
    choose.addEventListener("submit", event => event.preventDefault());
    choose.hidden = false;
  }
  addEventListener("hashchange", () => { read(); answer(); apply(); });
  form.hidden = false;
  read();
  answer();
  apply();
})();
