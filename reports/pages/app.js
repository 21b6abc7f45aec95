// SPDX-License-Identifier: Apache-2.0
// Which page is shown: the one that the address names after '#', with the state of its tables after '?'.
// Pages that are not in the document are in files of data/, loaded when they are opened: a row's in one of a number of
// files by the hash of its case, every other in one of its own.

var site = JSON.parse(document.getElementById("data").textContent);
var pages = new Map();  // name -> {page, shared}
var loading = new Map();  // file -> promise
var main = document.getElementById("main");
var drawn = 0;  // number of the newest call of show()

window.moegatePart = function (part) {
  Object.entries(part.pages).forEach(function (entry) {
    pages.set(entry[0], {page: entry[1], shared: part.shared});
  });
};
window.moegatePart(site.part);

// FNV-1a, as site_name.cc has it.
function hashOf(id) {
  var hash = 2166136261;
  new TextEncoder().encode(id).forEach(function (byte) { hash = Math.imul(hash ^ byte, 16777619); });
  return hash >>> 0;
}

function loadScript(address) {
  return new Promise(function (resolve, reject) {
    var script = document.createElement("script");
    script.src = address;
    script.onload = resolve;
    script.onerror = function () { reject(new Error(address + " cannot be read")); };
    document.head.append(script);
  });
}

// The file of a page, as site_files.cc names it; "" where there is none.
function fileOf(id) {
  if (id.startsWith("case=")) {
    var at = id.lastIndexOf("&variant="), hash = hashOf(at < 0 ? id : id.slice(0, at));
    var files = site.rowFiles, number = Math.floor(hash * files.length / 4294967296);
    return files.length > 0 ? "rows-" + number + "-" + files[number] : "";
  }
  var content = site.files[hashOf(id)];
  return content ? "page-" + hashOf(id) + "-" + content : "";
}

function load(id) {
  var file = fileOf(id);
  if (pages.has(id) || file === "") return Promise.resolve();
  if (!loading.has(file)) loading.set(file, loadScript("data/" + file + ".js"));
  return loading.get(file).catch(function () { loading.delete(file); });
}

function loadVega() {
  if (window.moegateVega) return Promise.resolve(window.moegateVega);
  if (site.vega) return Promise.reject(new Error("No charts: " + site.vega));
  if (!loading.has("vega")) loading.set("vega", loadScript("vega.js"));
  return loading.get("vega").then(function () { return window.moegateVega; });
}

function addressOf(id, state) {
  var query = state ? state.toString() : "";
  var name = encodeURIComponent(id).replace(/%3D/g, "=").replace(/%2C/g, ",").replace(/%2F/g, "/")
    .replace(/%26/g, "&").replace(/%3A/g, ":");
  return "#" + name + (query ? "?" + query : "");
}

// {id, state} of the address.
function place() {
  var text = location.hash.slice(1) || "start";
  var at = text.indexOf("?");
  var id = at < 0 ? text : text.slice(0, at);
  try { id = decodeURIComponent(id); } catch (error) { /* it is shown as it is */ }
  return {id: id, state: new URLSearchParams(at < 0 ? "" : text.slice(at + 1))};
}

// Keeps what a reader chose in the address, so that it can be sent to somebody.
function remember(state) {
  history.replaceState(null, "", addressOf(place().id, state));
}

function show(focus) {
  var here = place(), call = ++drawn;
  if (here.id === "main") return;  // the link to the content
  var page = madePage(here.id) || load(here.id).then(function () {
    var found = pages.get(here.id);
    if (!found) throw new Error("These pages have none called " + here.id + ".");
    return unpackPage(found.page, found.shared);
  });
  return page.catch(function (error) {
    return {title: "Not here", blocks: [{p: [[{t: error.message}]]}]};
  }).then(function (page) {
    if (call !== drawn) return;
    main.replaceChildren();
    document.title = page.title + " - moegate";
    drawPage(main, page, here.state);
    main.dataset.page = here.id;
    if (focus) { main.focus(); window.scrollTo(0, 0); }
  });
}

window.addEventListener("hashchange", function () { show(true); });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { show(false); });
document.querySelectorAll("header [data-needs]").forEach(function (element) {
  if (!fileOf(element.dataset.needs)) element.remove();
});
var search = document.getElementById("search");
if (search) {
  search.addEventListener("submit", function (event) {
    event.preventDefault();
    location.hash = addressOf("search=" + search.elements.words.value.trim());
  });
  document.addEventListener("keydown", function (event) {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    search.elements.words.focus();
  });
}
show(false);
