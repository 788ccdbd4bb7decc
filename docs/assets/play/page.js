"use strict";

// The page docs/play.md: a game against a model, with both models' probabilities at each decision.

const games = {}, models = { untrained: new Model(MODEL) };

function gameOf(name) {
  return games[name] ??= new Game(GAMES[name]);
}

function modelOf(kind, name) {
  const key = kind === "trained" ? name : kind;
  return models[key] ??= new Model(MODEL, TRAINED[name]);
}

// -- elements ---------------------------------------------------------------------------------------------

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function choice(id, label, options) {
  const select = element("select", { id });
  for (const [value, text] of Object.entries(options)) select.append(element("option", { value }, text));
  return element("label", {}, label, select);
}

const percent = (share) => `${(100 * share).toFixed(1)}%`;

// A probability as a number and as the length of a bar.
function cell(share) {
  return element("td", {}, element("span", { class: "bar", style: `width: ${100 * share}%` }), percent(share));
}

function promptBox(game, node) {
  const text = models.untrained.text(game.prompt(node));
  return element("details", {}, element("summary", {}, "The prompt as the model sees it"), element("pre", {}, text));
}

// A row per legal action. `name` returns what is in its first cell.
function oddsTable({ actions, untrained, trained }, name) {
  const head = element("tr", {});
  for (const title of ["Move", "Untrained", "Trained"]) head.append(element("th", { scope: "col" }, title));
  const rows = actions.map((action, i) => element("tr", {},
    element("th", { scope: "row" }, name(action)), cell(untrained[i]), cell(trained[i])));
  return element("table", { class: "odds" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

// -- the game ---------------------------------------------------------------------------------------------

function draw(probabilities) {
  let left = Math.random();
  const index = probabilities.findIndex((share) => (left -= share) < 0);
  return index < 0 ? probabilities.length - 1 : index;
}

// Both models' probabilities at a node.
function askModels(name, game, node) {
  const actions = game.legal(node), prompt = game.prompt(node);
  const [untrained, trained] = ["untrained", "trained"]
    .map((kind) => modelOf(kind, name).probabilities(prompt, actions));
  return { actions, untrained, trained };
}

class Play {
  constructor(root) {
    this.root = root;
    const names = Object.fromEntries(Object.keys(GAMES).map((name) => [name, name.replaceAll("_", " ")]));
    this.area = element("div", { id: "play-area" });
    this.status = element("p", { id: "play-status", role: "status" });
    this.about = element("p", { id: "play-about" });
    root.append(element("div", { class: "choices" },
      choice("play-game", "Game ", names),
      choice("play-seat", "You are ", { 0: "Player 0, who begins", 1: "Player 1" }),
      choice("play-against", "Against ", { trained: "the trained model", untrained: "the untrained model" }),
      element("button", { id: "play-new", type: "button" }, "New game")),
    this.about, this.status, this.area);
    root.querySelector(".choices").addEventListener("change", () => this.begin());
    root.querySelector("#play-new").addEventListener("click", () => this.begin());
    this.begin();
  }

  chosen(id) {
    return this.root.querySelector(`#play-${id}`).value;
  }

  begin() {
    this.name = this.chosen("game");
    this.game = gameOf(this.name);
    this.seat = Number(this.chosen("seat"));
    this.kind = this.chosen("against");
    this.node = 0;
    this.log = [];
    this.tell();
    this.goOn();
  }

  // Shows the run of the trained model.
  tell() {
    const run = TRAINED[this.name];
    const change = (key, show) => `${show(run.untrained[key])} before, ${show(run.policy[key])} after`;
    this.about.replaceChildren("Trained by ", element("code", {}, run.command),
      ` (seed ${run.seed}, ${run.decisions.toLocaleString("en")} decisions, ${run.date}). ` +
      `Share of best response against random play: ${change("share", percent)}. ` +
      `Exploitability: ${change("exploitability", (value) => value.toFixed(3))}.`);
  }

  // Chance and the model move until it is the visitor's turn, or the end.
  goOn() {
    for (let mover; (mover = this.game.mover(this.node)) !== "t" && mover !== this.seat;) {
      if (mover === "c") {
        const actions = this.game.legal(this.node);
        this.node = this.game.next(this.node, actions[draw(this.game.outcomes(this.node))]);
      } else {
        const asked = askModels(this.name, this.game, this.node);
        this.move(asked.actions[draw(asked[this.kind])], asked);
      }
    }
    this.show();
  }

  move(action, asked) {
    this.log.push({ node: this.node, action, asked });
    this.node = this.game.next(this.node, action);
  }

  // -- what is shown ----------------------------------------------------------------------------------------

  show() {
    const over = this.game.mover(this.node) === "t";
    this.area.replaceChildren();
    if (over) this.status.textContent = this.result();
    else this.showTurn();
    this.showLog(over);
  }

  result() {
    const won = this.game.returns(this.node, this.seat);
    const sign = won > 0 ? "+" : "";
    return `${won > 0 ? "You have won" : won < 0 ? "The model has won" : "A draw"}. Your return: ${sign}${won}.`;
  }

  showTurn() {
    const { game, node, seat } = this, asked = askModels(this.name, game, node);
    const last = this.log.at(-1)?.asked ? `The model: ${this.moved(this.log.at(-1))}. ` : "";
    this.status.textContent = `${last}It is your turn.`;
    const button = (action) => {
      const made = element("button", { type: "button", "data-action": action }, game.name(seat, action));
      made.addEventListener("click", () => this.take(action));
      return made;
    };
    this.area.append(element("pre", { id: "play-state" }, game.description(node)),
      element("p", {}, "Your moves, and how probable each model finds them in your place:"),
      oddsTable(asked, button), promptBox(game, node));
  }

  // The clicked button is gone afterwards, so the focus goes to the next turn's, or to what begins a game.
  take(action) {
    this.move(action);
    this.goOn();
    (this.area.querySelector("button") ?? this.root.querySelector("#play-new")).focus();
  }

  moved({ node, action }) {
    return this.game.name(this.game.mover(node), action);
  }

  // The moves so far. The model's probabilities would give its card away before the end.
  showLog(over) {
    const open = over || this.game.mover(0) !== "c", list = element("ol", { id: "play-log" });
    for (const turn of this.log) {
      const item = element("li", {}, `${turn.asked ? "The model" : "You"}: ${this.moved(turn)}`);
      if (turn.asked && open) {
        const table = oddsTable(turn.asked, (action) => this.game.name(this.game.mover(turn.node), action));
        item.append(element("details", {}, element("summary", {}, "The models' probabilities there"), table,
          promptBox(this.game, turn.node)));
      }
      list.append(item);
    }
    if (!this.log.length) return;
    const later = open ? "" : " The model's probabilities and card are shown after the game.";
    this.area.append(element("p", {}, `The game so far.${later}`), list);
  }
}

new Play(document.getElementById("play"));
