/* SPDX-License-Identifier: Apache-2.0 */
/* The status page. All text goes through textContent: names and command lines are other people's. */
"use strict";

const POLL_MS = 2000, SHOWN = 12; // programs of a chart with an area of their own
const at = id => document.getElementById(id);
const page = {
  token: "", state: null, range: 300, history: null, loaded: 0, counts: new Map(), rates: new Map(), usageAt: 0,
  charts: new Map(), sort: "program", falls: false, closed: new Set(), open: null,
};

// ---- small helpers ----

function make(parent, tag, text, values = {}) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
  if (parent) parent.append(node);
  return node;
}
const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const sum = (list, value) => list.reduce((total, item) => total + (value(item) || 0), 0);
const bytes = n => n < 1 ? "0" : n >= 2 ** 40 ? (n / 2 ** 40).toFixed(1) + " TiB" : n >= 2 ** 30 ? (n / 2 ** 30).toFixed(1) + " GiB" : n >= 2 ** 20 ? (n / 2 ** 20).toFixed(0) + " MiB" : (n / 1024).toFixed(0) + " KiB";
const duration = s => s < 60 ? s.toFixed(1) + " s" : s < 3600 ? (s / 60).toFixed(1) + " min" : s < 86400 ? (s / 3600).toFixed(1) + " h" : (s / 86400).toFixed(1) + " d";
const number = n => n >= 1e6 ? (n / 1e6).toFixed(1) + " M" : n >= 1e4 ? (n / 1e3).toFixed(1) + " k" : n.toFixed(0);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const ask = (path, options = {}) => fetch(path, {...options, cache: "no-store", headers: page.token ? {Authorization: "Bearer " + page.token} : {}});
async function read(path) {
  const answer = await ask(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// A canvas wants colors as they are, and not as names of the sheet.
const probe = make(document.body, "i", undefined, {hidden: ""});
function color(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
const hue = index => index === undefined ? "others" : "p" + index;
function swatch(parent, index) {
  const node = make(parent, "span", undefined, {class: "swatch", "aria-hidden": "true"});
  node.style.background = `var(--${hue(index)})`;
  return node;
}
function meter(parent, share) {
  make(make(parent, "div", undefined, {class: "meter", "aria-hidden": "true"}), "i").style.width = Math.min(100, 100 * share) + "%";
}

// ---- what the daemon says ----

const clients = () => page.state.servers.flatMap(server => server.clients.map(client => ({
  ...client, server, key: `${server.pid}:${client.id}`,
  sms: sum(client.devices, d => d.sms), granted: sum(client.devices, d => d.sm_granted), memory: sum(client.devices, d => d.memory), swapped: sum(client.devices, d => d.memory_swapped),
  time: sum(client.devices, d => d.gpu_seconds), limit: Math.min(...client.devices.map(d => d.memory_limit || Infinity)),
})));
const titleOf = client => client.command?.replace(/^\S*\//, "") || `Process ${client.pid || "in a container"}`;
const nameOf = program => program ? `${program.user}${program.group ? " · " + program.group : ""} · ${program.pid || "id " + program.id}` : "Others";

async function loadHistory() {
  const whole = page.range !== 300 || !page.history, last = whole ? 0 : page.history.samples.at(-1)?.[0] || 0;
  const period = page.history?.period || 0;
  if (page.range !== 300 && page.history && Date.now() - page.loaded < 1000 * Math.min(period, 60)) return;
  const range = page.range, got = await read(`api/history?range=${range}&since=${Math.floor(last * 1000)}`);
  if (range !== page.range) return;
  if (!whole) {
    got.samples = page.history.samples.concat(got.samples.filter(s => s[0] > last + .001)).filter(s => s[0] > page.state.time - range);
    got.programs = {...page.history.programs, ...got.programs};
  }
  page.history = got;
  page.loaded = Date.now();
}

function countLaunches(state) {
  const before = page.counts;
  page.counts = new Map();
  for (const server of state.servers) for (const client of server.clients) {
    const key = `${server.pid}:${client.id}`, then = before.get(key);
    page.counts.set(key, [client.launches, state.time]);
    if (then && state.time > then[1]) page.rates.set(key, (client.launches - then[0]) / (state.time - then[1]));
  }
  for (const key of page.rates.keys()) if (!page.counts.has(key)) page.rates.delete(key);
}

// ---- charts ----

// Of one GPU and column (2: multiprocessors, 3: bytes): the programs that had most, and their sums.
function stack(uuid, column, only) {
  const gpu = page.history.gpus.indexOf(uuid), totals = new Map(), gap = 3 * page.history.period;
  const rows = page.history.samples.map(([time, entries]) => [time, entries.filter(e => e[1] === gpu && (only === undefined || e[0] === only))]);
  for (const [, entries] of rows) for (const e of entries) totals.set(e[0], (totals.get(e[0]) || 0) + e[column]);
  totals.delete(0);
  const named = [...totals].filter(t => t[1] > 0).sort((a, b) => b[1] - a[1]).slice(0, SHOWN).map(t => t[0]).sort((a, b) => a - b);
  const place = new Map(named.map((serial, i) => [serial, i])), times = [], values = Array.from({length: named.length + 1}, () => []);
  let before = null;
  for (const [time, entries] of rows) {
    if (before && time - before > gap) { times.push(before + .001); values.forEach(v => v.push(null)); }
    const sample = new Array(named.length + 1).fill(0);
    for (const e of entries) sample[place.get(e[0]) ?? named.length] += e[column];
    times.push(time);
    sample.forEach((value, i) => values[i].push(value));
    before = time;
  }
  if (values.at(-1).some(v => v > 0)) named.push(0); else values.pop();
  return {times, named, values};
}
// uPlot draws one over the other, so the sum of all comes first.
function heap({times, values}) {
  const sums = [], zero = times.map((_, i) => values[0] && values[0][i] === null ? null : 0);
  let below = zero;
  for (const line of values) sums.push(below = line.map((v, i) => v === null ? null : v + below[i]));
  return [times, ...(sums.length ? sums.reverse() : [zero])];
}
const clock = new Intl.DateTimeFormat([], {hour: "2-digit", minute: "2-digit", hourCycle: "h23"});
const exact = new Intl.DateTimeFormat([], {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});
// Some round parts of what there is, up to all of it.
function parts(most, unit) {
  const count = [4, 3, 5, 6, 2].find(n => most / unit % n === 0) || 4;
  return Array.from({length: count + 1}, (_, i) => most * i / count);
}

class Chart {
  constructor(parent, title, uuid, column, most, only) {
    Object.assign(this, {uuid, column, most, only, title});
    this.box = make(parent, "div", undefined, {class: "chart"});
    make(this.box, "h3", title);
    this.plot = make(this.box, "div", undefined, {class: "plot", tabindex: "0", role: "group", "aria-roledescription": "chart"});
    this.tip = make(this.box, "div", undefined, {class: "tip", "aria-live": "polite", hidden: ""});
    this.plot.onkeydown = event => this.onKey(event);
    this.plot.onblur = () => this.u?.setCursor({left: -10, top: -10});
    this.watcher = new ResizeObserver(() => this.u?.setSize(this.size()));
    this.watcher.observe(this.plot);
  }
  size() { return {width: Math.max(80, this.plot.clientWidth), height: this.plot.clientHeight}; }
  format(value) { return this.column === 3 ? bytes(value) : value.toFixed(1); }
  build(named) {
    const grid = {stroke: color("grid"), width: 1}, axis = {stroke: color("dim"), font: "11px " + getComputedStyle(document.body).fontFamily, grid, ticks: {show: false}};
    const order = [...named].reverse(), back = color("panel");
    const series = order.map(serial => {
      const fill = color(hue(page.history.programs[serial]?.color));
      return {label: nameOf(page.history.programs[serial]), fill, stroke: back, width: .75, points: {show: false}};
    });
    this.u?.destroy();
    this.u = new uPlot({
      ...this.size(), legend: {show: false}, padding: [8, 18, 0, 0],
      cursor: {drag: {x: false, y: false}, points: {show: false}, sync: {key: this.only === undefined ? "gpus" : "drawer", setSeries: false, scales: ["x", null]}},
      scales: {x: {time: true, range: () => [this.now - page.range, this.now]}, y: {range: () => [0, this.most]}},
      axes: [
        {...axis, size: 26, space: 72, incrs: [30, 60, 120, 300, 600, 1200, 3600, 7200, 10800, 14400, 21600], values: (_, ticks) => ticks.map(t => clock.format(t * 1000) + (page.range === 300 && t % 60 ? ":" + String(t % 60).padStart(2, "0") : ""))},
        {...axis, size: 58, splits: () => parts(this.most, this.column === 3 ? 2 ** 30 : 1), values: (_, ticks) => ticks.map(t => this.column === 3 ? bytes(t) : String(+t.toFixed(2)))},
      ],
      series: [{}, ...(series.length ? series : [{label: "Nothing", points: {show: false}}])],
      hooks: {setCursor: [u => this.showTip(u)]},
    }, this.data, this.plot);
  }
  show(now) {
    const stacked = stack(this.uuid, this.column, this.only), shape = [...stacked.named, page.range, document.documentElement.dataset.theme, dark.matches].join();
    this.now = now;
    this.stacked = stacked;
    this.data = heap(stacked);
    if (shape === this.shape) this.u.setData(this.data);
    else { this.shape = shape; this.build(stacked.named); }
    const last = stacked.values.map(line => line.at(-1) || 0), total = last.reduce((a, b) => a + b, 0);
    this.plot.setAttribute("aria-label", `${this.title}: now ${this.format(total)} of ${this.format(this.most)}. Arrow keys move through time.`);
  }
  showTip(u) {
    const i = u.cursor.idx, box = this.tip, {times, named, values} = this.stacked;
    box.hidden = u.cursor.left < 0 || i === null || i === undefined || !named.length || values[0][i] === null;
    if (box.hidden) return;
    const rows = named.map((serial, n) => [serial, values[n][i]]).filter(row => row[1] > 0).sort((a, b) => b[1] - a[1]);
    box.replaceChildren();
    const head = make(box, "div");
    make(head, "b", exact.format(times[i] * 1000));
    make(head, "b", this.format(sum(rows, row => row[1]))).style.gridColumn = "3";
    for (const [serial, value] of rows.slice(0, 10)) {
      const line = make(box, "div"), program = page.history.programs[serial];
      swatch(line, program?.color);
      make(line, "span", nameOf(program));
      make(line, "span", this.format(value));
    }
    if (rows.length > 10) make(box, "div", `and ${rows.length - 10} more`);
    const x = u.over.offsetLeft + u.cursor.left, right = x + 16 + box.offsetWidth > this.box.clientWidth;
    box.style.left = Math.max(0, right ? x - 16 - box.offsetWidth : x + 16) + "px";
    box.style.top = this.plot.offsetTop + 12 + "px";
  }
  onKey(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9}[event.key], times = this.data[0];
    if (!step || !times.length) return;
    event.preventDefault();
    const from = this.u.cursor.left < 0 ? times.length : this.u.cursor.idx ?? times.length, i = Math.max(0, Math.min(times.length - 1, from + step));
    this.u.setCursor({left: this.u.valToPos(times[i], "x"), top: 20});
  }
  destroy() { this.watcher.disconnect(); this.u?.destroy(); this.box.remove(); }
}

// ---- GPUs ----

function showGpu(gpu, list) {
  let card = page.charts.get(gpu.uuid);
  if (!card) {
    const box = make(at("gpus"), "section", undefined, {class: "panel gpu", "aria-label": gpu.name}), head = make(box, "div", undefined, {class: "gpu-head"}), charts = make(box, "div", undefined, {class: "charts"});
    card = {box, head, charts: [new Chart(charts, "Multiprocessors in use", gpu.uuid, 2, gpu.multiprocessors), new Chart(charts, "Memory in use", gpu.uuid, 3, gpu.memory_total)]};
    page.charts.set(gpu.uuid, card);
  }
  const figure = (name, value, rest, share) => {
    const box = make(card.head, "div", undefined, {class: "figure"}), line = make(box, "div", undefined, {class: "value"});
    box.prepend(make(null, "div", name, {class: "name"}));
    line.append(value, " ");
    make(line, "small", rest);
    if (share !== undefined) meter(box, share);
  };
  card.head.replaceChildren();
  const names = make(card.head, "div");
  make(names, "h2", page.state.gpus.length > 1 ? `${page.state.gpus.indexOf(gpu)} · ${gpu.name}` : gpu.name);
  make(names, "div", `${gpu.pci_bus_id ? gpu.pci_bus_id + " · " : ""}${gpu.uuid.slice(0, 12)}`, {class: "dim", title: gpu.uuid});
  const users = list.filter(c => c.devices.some(d => d.uuid === gpu.uuid)), used = gpu.memory_free === null ? null : gpu.memory_total - gpu.memory_free;
  figure("Multiprocessors", gpu.sms === null ? "–" : gpu.sms.toFixed(1), `of ${gpu.multiprocessors}`, gpu.sms / gpu.multiprocessors);
  figure("Memory", used === null ? "–" : bytes(used), `of ${bytes(gpu.memory_total)}`, used / gpu.memory_total);
  if (gpu.utilization_ratio !== undefined) figure("Busy", `${Math.round(100 * gpu.utilization_ratio)} %`, gpu.sm_clock_hertz ? `at ${Math.round(gpu.sm_clock_hertz / 1e6)} MHz` : "", gpu.utilization_ratio);
  if (gpu.power_watts !== undefined) figure("Power", `${Math.round(gpu.power_watts)} W`, gpu.power_limit_watts ? `of ${Math.round(gpu.power_limit_watts)} W` : "", gpu.power_limit_watts && gpu.power_watts / gpu.power_limit_watts);
  if (gpu.temperature_celsius !== undefined) figure("Temperature", `${gpu.temperature_celsius} °C`, "");
  figure("Programs", String(users.length), users.length ? `by ${plural(new Set(users.map(c => c.user)).size, "user")}` : "");
  const gpuIndex = page.history.gpus.indexOf(gpu.uuid);
  card.charts[0].box.parentNode.hidden = !page.history.samples.some(sample => sample[1].some(entry => entry[1] === gpuIndex));
  for (const chart of card.charts) chart.show(page.state.time);
}
function showGpus(list) {
  const there = new Set(page.state.gpus.map(gpu => gpu.uuid));
  for (const [uuid, card] of page.charts) if (!there.has(uuid)) {
    card.charts.forEach(chart => chart.destroy());
    card.box.remove();
    page.charts.delete(uuid);
  }
  for (const gpu of page.state.gpus) showGpu(gpu, list);
  at("idle").hidden = page.state.gpus.length > 0;
}

// ---- the table ----

const limitText = c => [c.sm_percent < 100 ? c.sm_percent + " %" : "", isFinite(c.limit) ? bytes(c.limit) : "", c.priority ? "below" : ""].filter(Boolean).join(", ") || "none";
const waitText = c => c.call_ms > 1000 ? `${c.call} ${duration(c.call_ms / 1000)}` : duration(c.queued_seconds);
const columns = [
  {id: "program", name: "Program", value: c => c.program ?? Infinity},
  {id: "user", name: "User", kind: "left", value: c => c.user, text: c => c.user},
  {id: "group", name: "Group", kind: "left hide-narrow", value: c => c.group, text: c => c.group || "–"},
  {id: "sms", name: "SMs", value: c => c.sms, text: c => c.sms.toFixed(1), bar: true, sums: true},
  {id: "memory", name: "Memory", value: c => c.memory, text: c => bytes(c.memory), sums: true},
  {id: "swapped", name: "Swapped", kind: "hide-medium", value: c => c.swapped, text: c => c.swapped ? bytes(c.swapped) : "–", sums: true},
  {id: "launches", name: "Launches/s", kind: "hide-narrow", value: c => page.rates.get(c.key) || 0, text: c => number(page.rates.get(c.key) || 0)},
  {id: "time", name: "GPU time", value: c => c.time, text: c => duration(c.time), sums: true},
  {id: "waits", name: "Waits", kind: "hide-narrow", value: c => c.queued_seconds, text: waitText},
  {id: "class", name: "Class", kind: "left hide-narrow", value: c => c.class, text: c => c.class},
  {id: "lane", name: "Lane", kind: "left hide-medium", value: c => c.server.lane, text: c => c.server.lane},
  {id: "limits", name: "Limits", kind: "hide-narrow", value: c => c.sm_percent, text: limitText},
];
function makeHeads() {
  for (const column of columns) {
    const head = make(at("heads"), "th", undefined, {scope: "col", class: column.id === "program" ? "left" : column.kind || ""});
    make(head, "button", column.name, {type: "button"}).onclick = () => {
      page.falls = page.sort === column.id ? !page.falls : !["program", "user", "group", "class", "lane"].includes(column.id);
      page.sort = column.id;
      showTable();
    };
  }
}
function sorted(list) {
  const {value} = columns.find(column => column.id === page.sort), sign = page.falls ? -1 : 1;
  return [...list].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return (x < y ? -sign : x > y ? sign : 0) || (a.program || 0) - (b.program || 0);
  });
}
const places = new Map(); // key -> row, so that a row keeps the focus
function place(key, fill) {
  let row = places.get(key);
  if (!row) {
    places.set(key, row = make(null, "tr"));
    fill(row);
  }
  return row;
}
function rowOf(client) {
  const row = place(client.key, node => {
    node.className = "program";
    const button = make(make(node, "td", undefined, {class: "left name", "data-name": "Program"}), "button", undefined, {type: "button", "aria-haspopup": "dialog"});
    swatch(button, client.color);
    make(button, "span");
    for (const column of columns.slice(1)) {
      const cell = make(node, "td", undefined, {class: column.kind || "", "data-name": column.name});
      make(cell, "span");
      if (column.bar) meter(cell, 0);
    }
    node.onclick = () => openDrawer(client.key);
  });
  row.firstChild.firstChild.firstChild.style.background = `var(--${hue(client.color)})`;
  row.classList.toggle("open", page.open === client.key);
  setText(row.firstChild.firstChild.lastChild, titleOf(client) + (client.active ? "" : " (ended)"));
  row.firstChild.title = client.command || "";
  columns.slice(1).forEach((column, i) => setText(row.children[i + 1].firstChild, column.text(client)));
  row.querySelector(".meter i").style.width = Math.min(100, 100 * client.sms / (client.granted || 1)) + "%";
  return row;
}
function groupRow(name, list) {
  const row = place("group " + name, node => {
    node.className = "group";
    make(make(node, "td", undefined, {class: "left name"}), "button", undefined, {type: "button"}).onclick = () => {
      page.closed[page.closed.has(name) ? "delete" : "add"](name);
      showTable();
    };
    for (const column of columns.slice(1)) make(node, "td", undefined, {class: column.kind || "", "data-name": column.name});
  });
  const button = row.firstChild.firstChild, total = {sms: sum(list, c => c.sms), memory: sum(list, c => c.memory), swapped: sum(list, c => c.swapped), time: sum(list, c => c.time)};
  setText(button, ` ${name || "no group"} · ${list.length}`);
  button.setAttribute("aria-expanded", String(!page.closed.has(name)));
  columns.slice(1).forEach((column, i) => setText(row.children[i + 1], column.sums ? column.text(total) : ""));
  return row;
}
function showTable() {
  const words = at("filter").value.toLowerCase().split(/\s+/), all = clients(), fold = at("fold").value;
  const list = sorted(all.filter(c => words.every(w => `${c.user} ${c.group} ${c.class} ${c.server.lane} ${c.pid} ${c.command || ""} ${c.server.name}`.toLowerCase().includes(w))));
  const rows = fold ? [] : list.map(rowOf);
  for (const name of fold ? [...new Set(list.map(c => c[fold]))].sort() : []) {
    const members = list.filter(c => c[fold] === name);
    rows.push(groupRow(name, members));
    if (!page.closed.has(name)) rows.push(...members.map(rowOf));
  }
  const body = at("rows"), focused = document.activeElement;
  if (rows.length !== body.children.length || rows.some((row, i) => body.children[i] !== row)) {
    body.replaceChildren(...rows);
    if (body.contains(focused)) focused.focus({preventScroll: true});
  }
  for (const [key, row] of places) if (!body.contains(row)) places.delete(key);
  columns.forEach((column, i) => column.id === page.sort ? at("heads").children[i].setAttribute("aria-sort", page.falls ? "descending" : "ascending") : at("heads").children[i].removeAttribute("aria-sort"));
  setText(at("count"), all.length ? list.length < all.length ? `${list.length} of ${all.length}` : String(all.length) : "");
  at("none").hidden = list.length > 0;
  setText(at("none"), all.length ? "No program fits the filter." : "No program uses a GPU.");
}

// ---- the drawer ----

const opened = () => clients().find(c => c.key === page.open);
let charts = [], origin = null;
function openDrawer(key) {
  origin = document.activeElement;
  page.open = key;
  const client = opened();
  charts.forEach(chart => chart.destroy());
  charts = client.devices.flatMap(device => {
    const gpu = page.state.gpus.find(g => g.uuid === device.uuid);
    return !gpu || client.program === undefined ? [] : [new Chart(at("drawer-charts"), client.devices.length > 1 ? `Multiprocessors of ${gpu.pci_bus_id}` : "Multiprocessors", gpu.uuid, 2, gpu.multiprocessors, client.program),
      new Chart(at("drawer-charts"), "Memory", gpu.uuid, 3, gpu.memory_total, client.program)];
  });
  at("drawer").hidden = false;
  setText(at("done"), "");
  at("client-log").textContent = "";
  fillLimits(client);
  showDrawer();
  showTable();
  at("who").focus();
  showClientLog();
}
function closeDrawer() {
  if (!page.open) return;
  page.open = null;
  at("drawer").hidden = true;
  charts.forEach(chart => chart.destroy());
  charts = [];
  showTable();
  origin?.isConnected && origin.focus();
}
function reasons(c) {
  const found = [];
  if (c.call_ms > 1000) found.push(`It has been in ${c.call} for ${duration(c.call_ms / 1000)}.`);
  if (c.granted && c.sms > .95 * c.granted) found.push(`It uses all of the ${c.granted} multiprocessors that it may use.`);
  for (const d of c.devices) if (d.memory_limit && d.memory > .95 * d.memory_limit) found.push(`It has ${bytes(d.memory)} of its memory limit of ${bytes(d.memory_limit)}.`);
  if (c.memory_refused) found.push(`Its memory limit has refused ${plural(c.memory_refused, "allocation")}.`);
  if (c.waits_for_room) found.push("It waits for device memory until others have made room.");
  if (c.evictions) found.push(`Its memory has left the GPU ${plural(c.evictions, "time")} to make room for others.`);
  if (c.obstacle) found.push(`It makes no room for others: ${c.obstacle}.`);
  if (c.quota_refused) found.push(`A quota has refused something ${plural(c.quota_refused, "time")}: client.log names it.`);
  if (c.stalls) found.push(`Calls of other programs kept it waiting ${plural(c.stalls, "time")}, ${duration(c.stalled_seconds)} together${c.stall_cause ? ", last " + c.stall_cause : ""}.`);
  if (c.time && c.shared_seconds > .5 * c.time) found.push(`Other programs had kernels on the GPU in ${(100 * c.shared_seconds / c.time).toFixed(0)} % of its time.`);
  return found.length ? found : ["It waits for nothing that the daemon knows of."];
}
function showDrawer() {
  const client = opened(), head = at("who");
  if (!page.open) return;
  if (!client) {
    setText(at("done"), "");
    head.replaceChildren("This program has ended");
    at("limits").hidden = true;
    return;
  }
  head.replaceChildren();
  swatch(head, client.color);
  head.append(nameOf(client));
  setText(at("command"), client.command || "");
  charts.forEach(chart => chart.show(page.state.time));
  at("facts").replaceChildren();
  for (const [name, value] of [["Multiprocessors now", `${client.sms.toFixed(1)} of ${client.granted}`], ["Memory", `${bytes(client.memory)}, at most ${bytes(sum(client.devices, d => d.memory_peak))}`],
    ["Swapped", client.suspended ? `${bytes(client.swapped)}, suspended` : client.evicted ? `${bytes(client.swapped)}, evicted` : bytes(client.swapped)],
    ["GPU time", duration(client.time)], ["Since", exact.format(client.since * 1000)], ["Launches", number(client.launches)], ["Copied", bytes(client.copied_bytes)],
    ["Waits in queue", duration(client.queued_seconds)], ["Limits", limitText(client)], ["Class", client.class], ["Lane", client.server.lane], ["Server", client.server.name], ["Process", String(client.pid || "–")]]) {
    const box = make(at("facts"), "div");
    make(box, "dt", name);
    make(box, "dd", value);
  }
  const why = reasons(client);
  if (why.join() !== [...at("why").children].map(li => li.textContent).join()) at("why").replaceChildren(...why.map(text => make(null, "li", text)));
  at("limits").hidden = at("lines").hidden = !page.state.operator;
}
const memoryStep = client => Math.min(...client.devices.map(d => page.state.gpus.find(g => g.uuid === d.uuid)?.memory_total || Infinity)) / 64;
function fillLimits(client) {
  at("share").value = client.sm_percent;
  at("memory").value = isFinite(client.limit) ? Math.max(1, Math.round(client.limit / memoryStep(client))) : 65;
  at("below").checked = client.priority > 0;
  page.before = limitValues(client);
  showLimits();
}
const limitValues = client => ({sm_centipercent: Math.round(at("share").value * 100), memory: +at("memory").value > 64 ? 0 : Math.round(at("memory").value * memoryStep(client)), priority: at("below").checked ? 1 : 0});
function showLimits() {
  const client = opened(), values = client && limitValues(client);
  if (!client) return;
  setText(at("share-text"), at("share").value + " %");
  setText(at("memory-text"), values.memory ? bytes(values.memory) : "no limit");
  at("memory").setAttribute("aria-valuetext", at("memory-text").textContent);
}
async function order(what, more, done) {
  const client = opened();
  if (!client) return;
  const answer = await ask(`api/${what}?server=${client.server.pid}&id=${client.id}&pid=${client.pid}${more}`, {method: "POST"}).catch(() => null);
  const ok = answer?.ok && (await answer.json()).status === 0;
  setText(at("done"), ok ? done : "The daemon has refused it; control.log says more.");
  at("done").classList.toggle("bad", !ok);
  if (ok) page.before = limitValues(client);
  tick();
}
// Behind the text of a line about one program stand a tab and its record (src/base/log_record.h).
const logLines = log => log.split("\n").map(line => {
  const [text, record] = line.split("\t");
  return {text, client: +record?.match(/"client":(\d+)/)?.[1]};
});
async function showClientLog() {
  const client = opened();
  if (!client || !page.state.operator) return;
  const texts = await Promise.all(["", `?server=${client.server.pid}`].map(query => ask("api/log" + query).then(r => r.ok ? r.text() : "").catch(() => "")));
  const lines = texts.flatMap(logLines).filter(line => line.client === client.pid).map(line => line.text).sort();
  if (page.open === client.key) setText(at("client-log"), lines.slice(-60).join("\n") || "No line in control.log or the server's log names this program.");
}

// ---- usage ----

const hours = s => (s / 3600).toFixed(2);
const usageColumns = [["clients", "Programs", number], ["failed", "Failed", number], ["gpu_seconds", "GPU hours", hours], ["sm_seconds", "SM hours", hours],
  ["memory_peak", "Memory peak", bytes], ["launches", "Launches", number], ["copied_bytes", "Copied", bytes], ["stalled_seconds", "Waited", duration]];
const usagePath = () => `api/usage?by=${at("usage-by").value}&days=${at("usage-days").value}`;
function usageRow(name, keys, row, whole) {
  const line = make(at("usage-rows"), "tr", undefined, {class: name});
  for (const key of keys) make(line, "td", row[key] || (name === "group" ? "" : "–"), {class: "left", "data-name": key});
  for (const [member, title, text] of usageColumns) {
    const cell = make(line, "td", text(row[member]), {"data-name": title});
    if (member === "sm_seconds") meter(cell, whole ? row[member] / whole : 0);
  }
}
async function showUsage(anew = true) {
  at("usage").hidden = !page.state.operator;
  if (!page.state.operator || !at("usage").open || (!anew && Date.now() - page.usageAt < 60_000)) return;
  page.usageAt = Date.now();
  const path = usagePath(), keys = at("usage-by").value.split(","), rows = await read(path).then(answer => answer.usage, () => null);
  if (path !== usagePath()) return; // the choice is another one now
  at("usage-heads").replaceChildren(...keys.map(key => make(null, "th", key[0].toUpperCase() + key.slice(1), {class: "left", scope: "col"})), ...usageColumns.map(column => make(null, "th", column[1], {scope: "col"})));
  at("usage-rows").replaceChildren();
  const all = Object.fromEntries(usageColumns.map(([member]) => [member, sum(rows || [], row => row[member])]));
  all.memory_peak = Math.max(0, ...(rows || []).map(row => row.memory_peak));
  for (const row of rows || []) usageRow("usage", keys, row, all.sm_seconds);
  if (rows?.length > 1) usageRow("group", keys, {...all, [keys[0]]: "All"}, all.sm_seconds);
  at("usage-heads").hidden = !rows?.length;
  at("usage-csv").disabled = !rows?.length;
  at("usage-none").hidden = rows?.length > 0;
  setText(at("usage-none"), rows ? "No program has ended in this time." : "The daemon cannot add up its journal: try funnel usage.");
}
// A link alone would come without the token.
async function saveUsage() {
  const answer = await ask(usagePath() + "&csv=1").catch(() => null);
  if (!answer?.ok) return;
  const link = make(null, "a", undefined, {download: `funnel-usage-by-${at("usage-by").value.replace(",", "-")}-${at("usage-days").value}d.csv`});
  link.href = URL.createObjectURL(await answer.blob());
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// ---- the rest ----

function say(text) {
  setText(at("trouble"), text);
  at("trouble").hidden = !text;
}
function showSummary(state, list) {
  setText(at("summary"), `${plural(state.gpus.length, "GPU")}, ${plural(list.length, "program")}${state.waiting ? `, ${state.waiting} waiting for a server` : ""} · Funnel ${state.version}`);
  const stall = state.servers.find(s => s.stall_seconds > 2), silent = state.servers.find(s => !s.responding);
  say(stall ? stall.stall || `Programs of ${stall.name} wait for another one's call since ${duration(stall.stall_seconds)}.` : silent ? `The server ${silent.name} does not respond.` : "");
  setText(at("access"), state.operator ? "Operator ✓" : "Operator");
}
async function showLog() {
  at("logs").hidden = !page.state.operator;
  if (!page.state.operator || !at("logs").open) return;
  const pre = at("log"), stays = pre.scrollTop + pre.clientHeight < pre.scrollHeight - 4;
  const text = await ask("api/log").then(answer => answer.text()).catch(() => "");
  setText(pre, logLines(text).map(line => line.text).join("\n"));
  if (!stays) pre.scrollTop = pre.scrollHeight;
}
function show() {
  const list = clients();
  showSummary(page.state, list);
  showGpus(list);
  showTable();
  showDrawer();
}
async function load() {
  const state = await read("api/state");
  if (page.state && page.state.since !== state.since) page.history = null;
  page.state = state;
  await loadHistory();
}
let running = null, again = false;
async function tick() {
  if (running) { again = true; return running; }
  running = load().then(() => true, () => false);
  const answers = await running;
  running = null;
  document.body.classList.toggle("lost", !answers);
  if (answers) {
    countLaunches(page.state);
    show();
    showLog();
    showUsage(false);
    document.body.dataset.ready = "1";
  } else {
    say("The daemon does not answer. The page goes on as soon as it does.");
  }
  if (again) { again = false; await tick(); }
}

const dark = matchMedia("(prefers-color-scheme: dark)"), themes = ["auto", "light", "dark"];
function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
  setText(at("theme"), theme[0].toUpperCase() + theme.slice(1));
  if (page.state && page.history) show();
}
const stored = { // a browser may keep nothing
  get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
  set: value => { try { localStorage.setItem("theme", value); } catch { return; } },
};
function signOut() {
  page.token = "";
  at("token").value = "";
  at("sign").close();
  tick();
}
function start() {
  makeHeads();
  setTheme(themes.includes(stored.get()) ? stored.get() : "auto");
  dark.onchange = () => page.state && page.history && show();
  at("theme").onclick = () => {
    const next = themes[(themes.indexOf(at("theme").textContent.toLowerCase()) + 1) % themes.length];
    stored.set(next);
    setTheme(next);
  };
  at("ranges").onchange = event => { page.range = +event.target.value; page.history = null; tick(); };
  at("filter").oninput = at("fold").onchange = () => page.state && showTable();
  at("access").onclick = () => { setText(at("wrong"), ""); at("sign").showModal(); at("token").focus(); };
  at("cancel").onclick = signOut;
  at("operator").onsubmit = async event => {
    event.preventDefault();
    page.token = at("token").value.trim();
    await tick();
    if (document.body.classList.contains("lost")) setText(at("wrong"), "The daemon does not answer.");
    else if (page.state.operator) at("sign").close();
    else setText(at("wrong"), "This token is wrong. It is a new one after each start of the daemon.");
  };
  at("close").onclick = closeDrawer;
  document.addEventListener("keydown", event => { if (event.key === "Escape" && !at("sign").open) closeDrawer(); });
  at("share").oninput = at("memory").oninput = showLimits;
  at("limits").onsubmit = event => {
    event.preventDefault();
    const client = opened(), changed = client ? Object.entries(limitValues(client)).filter(([name, value]) => value !== page.before[name]) : [];
    if (changed.length) order("limit", changed.map(([name, value]) => `&${name}=${value}`).join(""), "The limits are set.");
  };
  at("terminate").onclick = () => { const client = opened(); if (client && confirm(`Terminate ${nameOf(client)}?`)) order("terminate", "", "The program is being terminated."); };
  at("logs").ontoggle = () => showLog();
  at("usage").ontoggle = at("usage-days").onchange = at("usage-by").onchange = () => showUsage();
  at("usage-csv").onclick = saveUsage;
  tick();
  setInterval(tick, POLL_MS);
}
start();
