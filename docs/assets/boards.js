"use strict";

// Draws the boards of the games' pages with the replay page's functions (viewer.js).
for (const place of document.querySelectorAll(".board[data-board]")) {
  place.innerHTML = drawn(JSON.parse(place.dataset.board));
}
