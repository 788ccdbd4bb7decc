"use strict";

// Pictures, as SVG text.

function escaped(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

// After each, the sign that asks for a letter: phones show a picture of a pawn otherwise, always a black one.
const CHESS = { k: "♚", q: "♛", r: "♜", b: "♝", n: "♞", p: "♟" };
const AS_TEXT = "\uFE0E";

function piece(sign, x, y, board) {
  if (sign === ".") return "";
  if (board.pieces === "chess") {
    const white = sign !== sign.toLowerCase();
    return `<text x="${x}" y="${y + 14}" font-size="40" text-anchor="middle" stroke="#555" stroke-width=".7"` +
      ` fill="var(--${white ? "second" : "first"})">${CHESS[sign.toLowerCase()]}${AS_TEXT}</text>`;
  }
  if (sign === "#") return `<rect x="${x - 20}" y="${y - 20}" width="40" height="40" fill="var(--faint)"/>`;
  const own = sign.toLowerCase() === "x" ? "first" : "second";
  const king = sign !== sign.toLowerCase()
    ? `<circle cx="${x}" cy="${y}" r="8" fill="none" stroke="#e33" stroke-width="3"/>` : "";
  return `<circle cx="${x}" cy="${y}" r="19" fill="var(--${own})" stroke="#555"/>${king}`;
}

function framed(width, height, inside, label, style = "") {
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(label)}"${style}>${inside}</svg>`;
}

function grid(board) {
  const columns = board.rows[0].length;
  let out = "";
  board.rows.forEach((row, r) => [...row].forEach((sign, c) => {
    const dark = board.pieces && (r + c) % 2;
    out += `<rect x="${50 * c}" y="${50 * r}" width="50" height="50" stroke="var(--edge)"` +
      ` fill="var(--${dark ? "dark" : "field"})"/>` + piece(sign, 50 * c + 25, 50 * r + 25, board);
  }));
  return framed(50 * columns, 50 * board.rows.length, out, board.rows.join(" / "));
}

function points(board) {
  const size = 50 * board.rows.length;
  let out = `<rect width="${size}" height="${size}" fill="var(--field)"/>`;
  board.rows.forEach((row, r) => {
    const at = 50 * r + 25;
    out += `<path d="M25 ${at}H${size - 25}M${at} 25V${size - 25}" stroke="var(--edge)"/>`;
  });
  board.rows.forEach((row, r) => [...row].forEach((sign, c) => {
    out += piece(sign, 50 * c + 25, 50 * r + 25, board);
  }));
  return framed(size, size, out, board.rows.join(" / "));
}

function hex(board) {
  const wide = 46, high = 40, columns = board.rows[0].length, rows = board.rows.length;
  let out = "";
  board.rows.forEach((row, r) => [...row].forEach((sign, c) => {
    const x = 26 + wide * c + (wide / 2) * r, y = 29 + high * r;
    const corners = [[0, -26], [23, -13], [23, 13], [0, 26], [-23, 13], [-23, -13]];
    out += `<polygon points="${corners.map(([a, b]) => `${x + a},${y + b}`).join(" ")}"` +
      ' fill="var(--field)" stroke="var(--edge)"/>' + piece(sign, x, y, board);
  }));
  return framed(wide * columns + (wide / 2) * rows + 10, high * rows + 20, out, board.rows.join(" / "));
}

function numbers(board) {
  let out = "";
  board.rows.forEach((row, r) => row.forEach((number, c) => {
    out += `<rect x="${60 * c}" y="${60 * r}" width="60" height="60" fill="var(--field)" stroke="var(--edge)"/>`;
    if (number) {
      out += `<text x="${60 * c + 30}" y="${60 * r + 37}" font-size="20" text-anchor="middle"` +
        ` fill="var(--ink)">${number}</text>`;
    }
  }));
  return framed(60 * board.rows[0].length, 60 * board.rows.length, out, board.rows.join(" / "));
}

function cards(board) {
  let out = "", y = 0, widest = 1;
  for (const [label, held] of board.groups) {
    out += `<text x="0" y="${y + 16}" font-size="14" fill="var(--ink)">${escaped(label)}</text>`;
    held.forEach((card, number) => {
      const red = /[♥♦]/.test(card) ? "#c00" : "#111";
      out += `<rect x="${54 * number}" y="${y + 24}" width="48" height="64" rx="6" fill="#fff" stroke="#555"/>` +
        `<text x="${54 * number + 24}" y="${y + 63}" font-size="20" text-anchor="middle" fill="${red}">` +
        `${escaped(card)}</text>`;
    });
    widest = Math.max(widest, held.length);
    y += 100;
  }
  if (board.note) {
    out += `<text x="0" y="${y + 14}" font-size="14" fill="var(--ink)">${escaped(board.note)}</text>`;
  }
  const said = board.groups.map(([label, held]) => `${label}: ${held.join(" ")}`).join(", ");
  const width = Math.max(160, 54 * widest);
  return framed(width, y + 20, out, said, ` style="max-width:${width}px"`); // not as wide as a board
}

const DRAWN = { grid, points, hex, numbers, cards };

function drawn(board) {
  const known = board && (board.groups || (board.rows && board.rows.length));
  return known ? DRAWN[board.kind](board) : "";
}

// What the policy said, as HTML text.

function bars(turn) {
  if (!turn) return "";
  const odds = turn.probabilities;
  const rows = turn.legal.map((action, i) => [action, turn.names ? turn.names[i] : action, odds ? odds[i] : null]);
  if (odds) rows.sort((one, other) => other[2] - one[2]);
  const reply = odds && turn.action !== null ? "" : `<p>answer: ${escaped(turn.answer)}</p>`;
  return reply + rows.map(([action, name, share]) => {
    const taken = action === turn.action;
    const bar = share === null ? ""
      : ` ${(100 * share).toFixed(1)}%<i style="width:${(100 * share).toFixed(2)}%"></i>`;
    return `<p class="bar${taken ? " taken" : ""}">${taken ? "→ " : ""}${escaped(name)}${bar}</p>`;
  }).join("");
}

function about(game) {
  const score = game.score === null ? "" : `, score ${game.score.toFixed(3)}`;
  const step = game.step === null ? "" : `, after step ${game.step}`;
  const against = game.opponent === null ? "" : ` against ${game.opponent}`; // a trace has no opponent
  const address = ["task_id", "seat", "seed"].filter((key) => game[key] !== null);
  return `${game.player}${step}: ${game.game}${against}` +
    address.map((key) => `, ${key} ${game[key]}`).join("") + `: ${game.result}${score}`;
}

// The filter and the link.

const FILTERS = { "by-game": "game", "by-opponent": "opponent", "by-result": "result" };

function chosen(games, wanted) {
  const keys = Object.keys(wanted).filter((key) => wanted[key]);
  return games.map((game, i) => i).filter((i) => keys.every((key) => String(games[i][key]) === wanted[key]));
}

function place(hash, games) {
  const found = /^#e=(\d+)&m=(\d+)$/.exec(hash);
  const episode = Math.min(found ? Number(found[1]) : 0, games.length - 1);
  const { opening, positions } = games[episode];
  return [episode, Math.min(found ? Number(found[2]) : opening, positions.length - 1)];
}

function start() {
  const games = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  if (!games.length) {
    get("about").textContent = "There are no episodes here.";
    return;
  }
  let [episode, at] = place(location.hash, games);
  let listed = games.map((game, i) => i);

  function option(select, value, label) {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = label;
    select.append(made);
  }

  // A link to an episode that the filter leaves out turns the filter off.
  function follow() {
    [episode, at] = place(location.hash, games);
    if (!listed.includes(episode)) {
      for (const id of Object.keys(FILTERS)) get(id).value = "";
      listed = games.map((game, i) => i);
      list();
    }
    show();
  }

  function list() {
    get("episode").replaceChildren();
    for (const i of listed) option(get("episode"), i, `${i}: ${games[i].game}, ${games[i].result}`);
  }

  function show() {
    const game = games[episode], position = game.positions[at];
    get("about").textContent = about(game);
    get("move").textContent = position.move ? `${position.by}: ${position.move}` : "the beginning";
    get("board").innerHTML = drawn(position.board);
    get("text").textContent = position.text;
    const turn = position.turn === null ? null : game.turns[position.turn];
    get("value").textContent = turn && turn.value !== null ? `expects a score of ${turn.value.toFixed(3)}` : "";
    get("bars").innerHTML = bars(turn);
    get("slider").max = game.positions.length - 1;
    get("slider").value = at;
    get("slider").setAttribute("aria-valuetext", `position ${at + 1} of ${game.positions.length}`);
    get("episode").value = episode;
    get("link").href = `#e=${episode}&m=${at}`;
    history.replaceState(null, "", get("link").href);
  }

  function go(to) {
    at = Math.max(0, Math.min(to, games[episode].positions.length - 1));
    show();
  }

  function turnTo(i) {
    episode = i;
    go(games[i].opening);
  }

  for (const [id, key] of Object.entries(FILTERS)) {
    option(get(id), "", "all");
    for (const value of [...new Set(games.map((game) => String(game[key])))].sort()) {
      option(get(id), value, value === "null" ? "none" : value);
    }
    get(id).addEventListener("change", () => {
      listed = chosen(games, Object.fromEntries(Object.entries(FILTERS).map(([one, of]) => [of, get(one).value])));
      list();
      get("replay").hidden = !listed.length;
      if (!listed.length) get("about").textContent = "No episode is of this kind.";
      else if (!listed.includes(episode)) turnTo(listed[0]);
      else show();
    });
  }
  get("episode").addEventListener("change", () => turnTo(Number(get("episode").value)));
  get("slider").addEventListener("input", () => go(Number(get("slider").value)));
  get("first").addEventListener("click", () => go(0));
  get("back").addEventListener("click", () => go(at - 1));
  get("on").addEventListener("click", () => go(at + 1));
  get("last").addEventListener("click", () => go(Infinity));
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    // A list or the slider has its own keys.
    if (/^(SELECT|INPUT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = listed.indexOf(episode) + (event.key === "ArrowDown" ? 1 : -1);
    if (event.key === "ArrowRight") go(at + 1);
    else if (event.key === "ArrowLeft") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(Infinity);
    else if (/^Arrow(Up|Down)$/.test(event.key) && listed[next] !== undefined) turnTo(listed[next]);
    else return;
    event.preventDefault();
  });
  list();
  show();
}

if (typeof document !== "undefined" && document.getElementById("data")) start(); // else only the functions are used
if (typeof module !== "undefined") module.exports = { escaped, drawn, bars, about, chosen, place };
