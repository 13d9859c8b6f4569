"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const PAGE = 25;
  let found = [];
  let shown = 0;

  const make = (name, text, parent) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  const option = (select, value, text) => { make("option", text, select).value = value; };

  const chosenDataset = () => data[Number(at("dataset").value)];

  const isOf = (row, status, model) => {
    const answers = (model === "" ? row.answers : [row.answers[Number(model)]]).filter(Boolean);
    if (status === "all") return answers.length > 0;
    if (status === "flipped") {
      const scores = new Set(row.answers.filter((one) => one && one.score !== null).map((one) => one.score));
      return scores.size > 1;
    }
    if (status === "left") return answers.some((one) => one.flags.some((flag) => /^(not_run|failed|unscored|too_long)$/.test(flag)));
    return answers.some((one) => one.flags.includes(status));
  };

  const has = (row, wanted) => wanted === "" ||
    [row.id, row.question, ...row.gold, ...Object.values(row.options), ...row.answers.map((one) => (one ? one.text : ""))]
      .some((text) => text.toLowerCase().includes(wanted));

  const say = (value) => (value === null ? "no score" : String(Math.round(value * 1000) / 1000));

  const showRow = (row, models) => {
    const item = make("li", undefined, at("list"));
    const details = make("details", undefined, item);
    const scores = row.answers.map((one, index) => (one ? `${models[index]} ${say(one.score)}` : null)).filter(Boolean);
    make("summary", `${row.id}: ${row.question.slice(0, 120)} (${scores.join(", ")})`, details);
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      make("h3", "Question", details);
      make("pre", row.question, details);
      const options = Object.entries(row.options);
      if (options.length) {
        make("h3", "Options", details);
        const list = make("ul", undefined, details);
        list.className = "options";
        for (const [label, text] of options) {
          const right = row.gold.some((gold) => gold.trim() === text.trim()) ? " (right)" : "";
          make("li", `${label}. ${text}${right}`, list);
        }
      } else {
        make("h3", "Right", details);
        make("pre", row.gold.join("\n"), details);
      }
      row.answers.forEach((one, index) => {
        if (!one) return;
        const flags = one.flags.length ? `, ${one.flags.join(", ").replaceAll("_", " ")}` : "";
        make("h3", `${models[index]}: ${say(one.score)}${flags}`, details);
        make("pre", one.text, details);
        const chosen = one.chosen ? `${one.chosen}. ` : "";
        if (one.read !== null && chosen + one.read !== one.text) make("p", `Read as: ${chosen}${one.read}`, details);
        else if (one.read === null && options.length) make("p", "Read as: none of the options", details);
      });
    });
  };

  const showMore = () => {
    const { models } = chosenDataset();
    for (const row of found.slice(shown, shown + PAGE)) showRow(row, models);
    shown = Math.min(found.length, shown + PAGE);
    at("more").hidden = shown >= found.length;
  };

  const apply = () => {
    const dataset = chosenDataset();
    const status = at("status").value;
    const wanted = at("search").value.trim().toLowerCase();
    found = dataset.rows.filter((row) => isOf(row, status, at("model").value) && has(row, wanted));
    shown = 0;
    at("list").replaceChildren();
    const sampled = dataset.rows.length < dataset.total ? `; a sample of ${dataset.rows.length} of ${dataset.total} rows` : "";
    at("found").textContent = `${found.length} of ${dataset.rows.length} rows${sampled}`;
    showMore();
  };

  const chooseDataset = () => {
    at("model").replaceChildren();
    option(at("model"), "", "any");
    chosenDataset().models.forEach((model, index) => option(at("model"), String(index), model));
    apply();
  };

  data.forEach((dataset, index) => option(at("dataset"), String(index), dataset.title));
  at("dataset").addEventListener("change", chooseDataset);
  for (const id of ["status", "model", "search"]) at(id).addEventListener("input", apply);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("more").addEventListener("click", showMore);
  chooseDataset();
})();
