// Search, tabs, copying, and "Try it", which signs requests here. Without this script every text is still on the page.

/** The key of "Try it": in the memory of this page alone. */
let credentials = null

const encoded = (text) => new TextEncoder().encode(text)
const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("")

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

// Search: entries are fetched when the field is first used.

const query = document.getElementById("query")
const found = document.getElementById("found")
let entries = null
let chosen = -1

async function search() {
  entries ??= await (await fetch("/docs/search.json")).json()
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean)
  const text = (entry) => `${entry.title} ${entry.about} ${entry.words}`.toLowerCase()
  const matching = words.length
    ? entries.filter((entry) => words.every((word) => text(entry).includes(word))).slice(0, 12)
    : []
  found.replaceChildren(
    ...matching.map((entry, at) => {
      const item = element("li", { id: `found-${at}` }, element("a", { href: entry.path, tabIndex: -1 },
        entry.title, element("small", {}, entry.about)))
      item.setAttribute("role", "option")
      return item
    }),
  )
  choose(matching.length ? 0 : -1)
  show(matching.length > 0)
}

function choose(at) {
  chosen = at
  for (const [place, item] of [...found.children].entries()) {
    item.setAttribute("aria-selected", String(place === at))
    if (place === at) item.scrollIntoView({ block: "nearest" })
  }
  if (at >= 0) query.setAttribute("aria-activedescendant", `found-${at}`)
  else query.removeAttribute("aria-activedescendant")
}

function show(visible) {
  found.hidden = !visible
  query.setAttribute("aria-expanded", String(visible))
}

query.addEventListener("input", search)
query.addEventListener("keydown", (event) => {
  const last = found.children.length - 1
  if (event.key === "ArrowDown") choose(Math.min(chosen + 1, last))
  else if (event.key === "ArrowUp") choose(Math.max(chosen - 1, 0))
  else if (event.key === "Enter" && chosen >= 0) found.children[chosen].firstChild.click()
  else if (event.key === "Escape") show(false)
  else return
  event.preventDefault()
})
found.addEventListener("click", () => show(false))
document.addEventListener("click", (event) => {
  if (!event.target.closest("#search")) show(false)
})
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea")) return
  event.preventDefault()
  query.focus()
})
document.getElementById("search").hidden = false

// Examples: one language at a time, the same one everywhere.

const LANGUAGE = "bankside-docs-language"

function speak(language) {
  for (const samples of document.querySelectorAll(".samples")) {
    for (const sample of samples.querySelectorAll(".sample")) {
      sample.hidden = sample.dataset.language !== language
    }
    for (const tab of samples.querySelectorAll("[role=tab]")) {
      const is = tab.textContent === language
      tab.setAttribute("aria-selected", String(is))
      tab.tabIndex = is ? 0 : -1
    }
  }
}

for (const samples of document.querySelectorAll(".samples")) {
  const languages = [...samples.querySelectorAll(".sample")]
  const tabs = element("div", { className: "tabs" })
  tabs.setAttribute("role", "tablist")
  tabs.setAttribute("aria-label", "Language")
  for (const sample of languages) {
    sample.querySelector("h4").hidden = true
    sample.id = `${samples.dataset.operation}-in-${sample.dataset.language}`
    sample.setAttribute("role", "tabpanel")
    sample.setAttribute("aria-label", sample.dataset.language)
    const tab = element("button", { type: "button", textContent: sample.dataset.language })
    tab.setAttribute("role", "tab")
    tab.setAttribute("aria-controls", sample.id)
    tab.addEventListener("click", () => {
      localStorage.setItem(LANGUAGE, sample.dataset.language)
      speak(sample.dataset.language)
    })
    tabs.append(tab)
  }
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    const all = [...tabs.children]
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length]
    next.click()
    next.focus()
  })
  languages[0].before(tabs)
}
speak(localStorage.getItem(LANGUAGE) ?? "curl")

for (const block of document.querySelectorAll(".prose pre")) {
  const frame = element("div", { className: "code" }, element("button", { type: "button", className: "copy quiet", textContent: "Copy" }))
  block.replaceWith(frame)
  block.tabIndex = 0
  frame.append(block)
}
for (const button of document.querySelectorAll(".copy")) {
  button.hidden = !navigator.clipboard
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.nextElementSibling.textContent)
    button.textContent = "Copied"
    setTimeout(() => (button.textContent = "Copy"), 1500)
  })
}

// A link into a part that is folded opens it; `/docs#sendWire`, a row of the start page, leads on to the operation.

function follow() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)))
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true
  if (target && target.tagName === "TR" && location.pathname === "/docs") location.replace(target.querySelector("a").href)
}
addEventListener("hashchange", follow)
follow()

// "Try it".

const dialog = document.getElementById("key-dialog")
const opener = document.getElementById("open-key")

opener.addEventListener("click", () => dialog.showModal())
dialog.addEventListener("close", () => {
  const [key, secret] = ["subscription-key", "secret"].map((id) => document.getElementById(id))
  credentials = dialog.returnValue === "use" && key.value && secret.value
    ? { key: key.value.trim(), secret: secret.value.trim() } : dialog.returnValue ? null : credentials
  secret.value = ""
  opener.textContent = credentials ? `Signing with ${credentials.key.slice(0, 10)}…` : "Your key"
})

async function signed(method, target, body) {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const nonce = crypto.randomUUID()
  const digest = hex(await crypto.subtle.digest("SHA-256", encoded(body)))
  const canonical = ["v1", timestamp, nonce, credentials.key, method, target, digest].join("\n")
  const algorithm = { name: "HMAC", hash: "SHA-256" }
  const key = await crypto.subtle.importKey("raw", encoded(credentials.secret), algorithm, false, ["sign"])
  const signature = hex(await crypto.subtle.sign("HMAC", key, encoded(canonical)))
  return {
    canonical,
    headers: {
      "X-API-SUBSCRIPTION-KEY": credentials.key,
      "X-API-TIMESTAMP": timestamp,
      "X-API-NONCE": nonce,
      "X-API-SIGNATURE": signature,
    },
  }
}

function targetOf(form) {
  let path = form.dataset.path
  const pairs = []
  for (const input of form.querySelectorAll("[data-in]")) {
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value.trim()))
    else if (input.value.trim()) pairs.push(`${input.name}=${encodeURIComponent(input.value.trim())}`)
  }
  // As the browser sends it: it writes an apostrophe of a query as %27.
  const url = new URL(pairs.length ? `${path}?${pairs.join("&")}` : path, location.origin)
  return url.pathname + url.search
}

/** Both canonical strings, with what differs first marked in each. */
function compared(ours, theirs) {
  if (ours === theirs) {
    return element("div", {}, element("h4", {}, "Signed here, and expected by the server"), element("pre", {}, ours),
      element("p", {}, "Both are the same: it is the secret that is not this key's."))
  }
  let at = 0
  while (at < ours.length && ours[at] === theirs[at]) at += 1
  const seen = (sign) => (sign === "\n" ? "↵\n" : sign || "∅")
  const marked = (title, text) => element("div", {}, element("h4", {}, title),
    element("pre", {}, text.slice(0, at), element("mark", {}, seen(text.slice(at, at + 1))), text.slice(at + 1)))
  return element("div", { className: "compared" }, marked("Signed here", ours), marked("Expected by the server", theirs))
}

/** JSON with line breaks, its numbers as they came: through JavaScript's they would not be exact. */
function indented(json) {
  let depth = 0
  const line = () => `\n${"  ".repeat(depth)}`
  return json
    .match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)
    .map((token, at, all) => {
      if ("{[".includes(token)) {
        depth += 1
        return "}]".includes(all[at + 1]) ? token : token + line()
      }
      if ("}]".includes(token)) {
        depth -= 1
        return "{[".includes(all[at - 1]) ? token : line() + token
      }
      return { ",": `,${line()}`, ":": ": " }[token] ?? token
    })
    .join("")
}

/** Of each form: the key of a request that has no final answer yet, so that sending it again repeats it. */
const unanswered = new WeakMap()

function keyOf(form, request) {
  if (unanswered.get(form)?.request !== request) unanswered.set(form, { request, key: crypto.randomUUID() })
  return unanswered.get(form).key
}

// By our own answers alone: a proxy's page says nothing of what became of the request.
function isFinal(status, body) {
  if (status === 200) return "data" in body
  if (status === 422) return Array.isArray(body.detail)
  if (![400, 404, 409].includes(status) || typeof body.code !== "string") return false
  return body.code !== "idempotency_in_progress" && body.code !== "abandoned"
}

async function attempt(form) {
  const method = form.dataset.method
  const target = targetOf(form)
  const body = form.elements.body?.value ?? ""
  const { canonical, headers } = await signed(method, target, body)
  if (body) headers["Content-Type"] = "application/json"
  if ("idempotent" in form.dataset) headers["Idempotency-Key"] = keyOf(form, [target, body].join("\n"))
  const answer = await fetch(target, { method, headers, body: body || undefined, cache: "no-store", credentials: "omit" })
  const text = await answer.text()
  const shown = [element("h4", {}, "Canonical string"), element("pre", {}, canonical)]
  let pretty = text
  try {
    const parsed = JSON.parse(text)
    if (isFinal(answer.status, parsed)) unanswered.delete(form)
    if (answer.status === 401 && parsed.canonical_string) shown.splice(0, 2, compared(canonical, parsed.canonical_string))
    pretty = indented(text)
  } catch {
    pretty = text
  }
  return [...shown, element("h4", {}, `Answer ${answer.status}`), element("pre", { className: "answer" }, pretty)]
}

for (const form of document.querySelectorAll(".try")) {
  form.hidden = false
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    const outcome = form.querySelector(".outcome")
    if (!credentials) {
      dialog.showModal()
      return
    }
    const button = form.querySelector("button[type=submit], button:not([type])")
    button.disabled = true
    try {
      outcome.replaceChildren(...(await attempt(form)))
    } catch (error) {
      const insecure = !globalThis.crypto?.subtle
      const repeats = unanswered.has(form)
        ? " It may have been carried out: sending the same again repeats it under the same Idempotency-Key."
        : ""
      outcome.replaceChildren(element("p", {}, insecure
        ? "Browsers sign on https and on localhost only: open this page there."
        : `No answer came: ${error.message}.${repeats}`))
    } finally {
      button.disabled = false
    }
  })
}
opener.hidden = false
