"use strict";
(() => {
  const sheet = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const KEY = `helm-ext sheet ${sheet.id}`;
  const items = sheet.rows.map((row) => row[0]);
  const ITEM = 0, QUESTION = 1, REFERENCE = 2, ANSWER = 3;
  let labels = {};
  let place = 0;
  let taken = [];
  let isKept = true;

  try {
    const kept = JSON.parse(localStorage.getItem(KEY) || "{}");
    for (const [item, label] of Object.entries(kept.labels || {})) {
      if (items.includes(item) && sheet.values.some((value) => value.label === label)) labels[item] = label;
      else if (items.includes(item) && sheet.range && isIn(label)) labels[item] = label;
    }
    if (Number.isInteger(kept.place) && kept.place >= 0 && kept.place < items.length) place = kept.place;
  } catch { isKept = false; }

  function isIn(label) {
    return /^\d+(\.\d+)?$/.test(label) && Number(label) >= sheet.range[0] && Number(label) <= sheet.range[1];
  }

  const keep = () => {
    try { localStorage.setItem(KEY, JSON.stringify({ labels, place })); } catch { isKept = false; }
  };

  const show = () => {
    const row = sheet.rows[place];
    at("question").textContent = row[QUESTION];
    at("reference").textContent = row[REFERENCE];
    at("known").hidden = row[REFERENCE] === "";
    at("answer").textContent = row[ANSWER];
    const label = labels[row[ITEM]];
    for (const button of at("values").querySelectorAll("button[data-label]")) {
      button.setAttribute("aria-pressed", String(button.dataset.label === label));
    }
    if (at("number")) at("number").value = label ?? "";
    const done = Object.keys(labels).length;
    at("bar").max = items.length;
    at("bar").value = done;
    const warning = isKept ? "" : " This browser keeps nothing: download before you close the page.";
    const all = done === items.length ? " All are labelled: download the labels." : "";
    at("said").textContent = `Answer ${place + 1} of ${items.length}, ${done} labelled.${all}${warning}`;
    at("back").disabled = place === 0;
    at("forth").disabled = place === items.length - 1;
    at("undo").disabled = taken.length === 0;
  };

  const go = (to) => {
    if (to < 0 || to >= items.length) return;
    place = to;
    keep();
    show();
    scrollTo(0, 0);
  };

  const goOn = () => {
    for (let step = 1; step <= items.length; step += 1) {
      const to = (place + step) % items.length;
      if (!(items[to] in labels)) { go(to); return; }
    }
    keep();
    show();
  };

  const give = (label) => {
    taken.push([place, labels[items[place]]]);
    labels[items[place]] = label;
    goOn();
  };

  const undo = () => {
    if (!taken.length) return;
    const [to, before] = taken.pop();
    if (before === undefined) delete labels[items[to]]; else labels[items[to]] = before;
    go(to);
  };

  const cell = (text) => {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };

  const toCSV = () => {
    const rows = sheet.rows.map((row) => [...row, labels[row[ITEM]] ?? ""]);
    return "\ufeff" + [sheet.columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
  };

  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([toCSV()], { type: "text/csv" }));
    link.download = sheet.file;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  for (const [index, value] of sheet.values.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.label = value.label;
    const key = document.createElement("kbd");
    key.textContent = String(index + 1);
    button.append(key, ` ${value.text}`);
    button.addEventListener("click", () => give(value.label));
    at("values").append(button);
  }
  if (!sheet.values.length) {
    const number = document.createElement("input");
    Object.assign(number, { id: "number", type: "number", step: "any", min: sheet.range[0], max: sheet.range[1] });
    number.setAttribute("aria-label", at("values").querySelector("legend").textContent);
    number.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && isIn(number.value)) give(number.value);
    });
    at("values").append(number);
  }
  at("back").addEventListener("click", () => go(place - 1));
  at("forth").addEventListener("click", () => go(place + 1));
  at("undo").addEventListener("click", undo);
  at("next").addEventListener("click", goOn);
  at("download").addEventListener("click", download);
  document.addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLInputElement || event.altKey || event.repeat) return;
    if ((event.ctrlKey || event.metaKey) && event.key !== "z") return;
    const value = /^[1-9]$/.test(event.key) ? sheet.values[Number(event.key) - 1] : undefined;
    if (value) give(value.label);
    else if (event.key === "ArrowLeft") go(place - 1);
    else if (event.key === "ArrowRight") go(place + 1);
    else if (event.key === "u" || event.key === "z") undo();
    else if (event.key === "n") goOn();
    else return;
    event.preventDefault();
  });
  show();
})();
