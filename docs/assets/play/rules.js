"use strict";

// The rules of a game, read from its tree (games.js). A position is a node; node 0 is the beginning.

class Game {
  constructor(table) {
    this.table = table;
    this.actions = [...table.actions].map(Number);
    this.firstEdges = [0];
    for (const count of table.counts) this.firstEdges.push(this.firstEdges.at(-1) + Number(count));
    // The lists have entries only where there is something to say.
    const states = table.states.values(), returns = table.returns.values(), chance = table.chance.values();
    this.states = [], this.ends = [], this.chance = [];
    [...table.movers].forEach((mover, node) => {
      if (mover === "t") this.ends[node] = returns.next().value;
      else if (mover !== "c") this.states[node] = states.next().value;
      else this.edges(node).forEach((edge) => { this.chance[edge] = chance.next().value; });
    });
  }

  edges(node) {
    const first = this.firstEdges[node];
    return Array.from({ length: this.firstEdges[node + 1] - first }, (_, i) => first + i);
  }

  // The seat to move, "c" for chance, or "t" at the end.
  mover(node) {
    const sign = this.table.movers[node];
    return "ct".includes(sign) ? sign : Number(sign);
  }

  legal(node) {
    return this.edges(node).map((edge) => this.actions[edge]);
  }

  next(node, action) {
    const edge = this.edges(node).find((each) => this.actions[each] === action);
    if (edge === undefined) throw Error(`action ${action} was given; legal: ${this.legal(node)}`);
    return this.table.children ? this.table.children[edge] : edge + 1;
  }

  // The probabilities of the actions of a node of chance.
  outcomes(node) {
    return this.edges(node).map((edge) => this.chance[edge]);
  }

  // A seat's return at an end.
  returns(node, seat) {
    return seat === 0 ? this.ends[node] : 0 - this.ends[node];
  }

  name(seat, action) {
    return this.table.names[seat][action];
  }

  // The description of the information of the seat to move.
  description(node) {
    return this.table.texts[this.states[node]];
  }

  prompt(node) {
    const seat = this.mover(node);
    const lines = this.legal(node).map((action) => `  ${action} -> ${this.name(seat, action)}`);
    return this.table.layout.replace("{seat}", seat).replace("{state}", this.description(node))
      .replace("{actions}", lines.join("\n"));
  }
}
