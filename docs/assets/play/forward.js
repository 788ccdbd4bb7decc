"use strict";

// The embedded model's forward pass: from a prompt to a probability for each legal action.
// The architecture is Qwen3's. Weights are float32, and sums are computed in float64.

// A matrix is its values, row after row, and the number of columns; a vector is a matrix of one column.
function unpack({ shape, data }) {
  const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
  return { values: Float64Array.from(new Float32Array(bytes.buffer)), columns: shape[1] ?? 1 };
}

// Adds scale * B A to the weights W, as an adapter of low rank does.
function adapt(weight, a, b, scale) {
  const rank = b.columns;
  for (let row = 0; row < b.values.length / rank; row++) {
    for (let k = 0; k < rank; k++) {
      const factor = scale * b.values[row * rank + k];
      for (let column = 0; column < a.columns; column++) {
        weight.values[row * a.columns + column] += factor * a.values[k * a.columns + column];
      }
    }
  }
}

function multiply({ values, columns }, vector) {
  const result = new Float64Array(values.length / columns);
  for (let row = 0, at = 0; row < result.length; row++) {
    // Four sums that do not wait for each other take two thirds of the time. All numbers of columns are multiples of 4.
    let a = 0, b = 0, c = 0, d = 0;
    for (let column = 0; column < columns; column += 4) {
      a += values[at++] * vector[column];
      b += values[at++] * vector[column + 1];
      c += values[at++] * vector[column + 2];
      d += values[at++] * vector[column + 3];
    }
    result[row] = a + b + c + d;
  }
  return result;
}

function dot(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += one[i] * other[i];
  return sum;
}

// As a typed array's own `map`, which is many times slower.
function map(vector, change) {
  const result = new Float64Array(vector.length);
  for (let i = 0; i < vector.length; i++) result[i] = change(vector[i], i);
  return result;
}

function add(one, other) {
  return map(one, (value, i) => value + other[i]);
}

function softmax(logits) {
  const largest = Math.max(...logits);
  const odds = logits.map((logit) => Math.exp(logit - largest));
  const sum = odds.reduce((one, other) => one + other);
  return odds.map((value) => value / sum);
}

// Divides by the root of the mean square (RMSNorm).
function normalise(vector, weight, epsilon) {
  const factor = 1 / Math.sqrt(dot(vector, vector) / vector.length + epsilon);
  return map(vector, (value, i) => value * factor * weight.values[i]);
}

// Turns pairs of values by angles that grow with the position (rotary embedding).
function rotate(vector, position, theta) {
  const half = vector.length / 2, result = new Float64Array(vector.length);
  for (let i = 0; i < half; i++) {
    const angle = position * theta ** (-i / half), cos = Math.cos(angle), sin = Math.sin(angle);
    result[i] = vector[i] * cos - vector[i + half] * sin;
    result[i + half] = vector[i + half] * cos + vector[i] * sin;
  }
  return result;
}

class Model {
  // `adapters` has a run's weights and their scale; without it the model is the untrained one.
  constructor({ config, ids, pieces, weights }, adapters) {
    this.config = config;
    this.ids = ids;
    this.pieces = pieces;
    this.weights = {};
    for (const [name, packed] of Object.entries(weights)) this.weights[name] = unpack(packed);
    for (const [name, packed] of Object.entries(adapters?.weights ?? {})) {
      if (!name.endsWith(".lora_A")) continue;
      const target = name.slice(0, -".lora_A".length), b = unpack(adapters.weights[`${target}.lora_B`]);
      adapt(this.weights[target], unpack(packed), b, adapters.scale);
    }
  }

  // The model's input: the chat template around the prompt, up to the beginning of the answer.
  text(prompt) {
    return `<|im_start|>user\n${prompt}<|im_end|>\n<|im_start|>assistant\n`;
  }

  // Places of the text's tokens in the embedding. The tokenizer never merges across digits, line ends and
  // control tokens, so each piece between them has its own tokens.
  tokens(text) {
    return text.match(/<\|im_\w+\|>|\d|[^\n\d<]*\n|[^\n\d<]+/g).flatMap((piece) => this.pieces[piece]);
  }

  // The legal actions' probabilities. An action is one digit, so it is one token: the logits of all other
  // tokens are masked, and the end of the turn, which must follow, has probability 1.
  probabilities(prompt, legal) {
    const hidden = this.read(this.tokens(this.text(prompt)));
    return softmax(legal.map((action) => dot(this.embed(this.pieces[action][0]), hidden)));
  }

  embed(token) {
    const { values, columns } = this.weights["embed_tokens"];
    return values.subarray(token * columns, (token + 1) * columns);
  }

  // The last token's hidden state. The last layer is computed at that position only.
  read(tokens) {
    const last = this.config.num_hidden_layers - 1;
    let states = tokens.map((token) => Float64Array.from(this.embed(token)));
    for (let layer = 0; layer <= last; layer++) {
      states = this.apply(layer, states, layer === last ? states.length - 1 : 0);
    }
    return normalise(states[0], this.weights["norm"], this.config.rms_norm_eps);
  }

  // The states of the positions from `first` on, after a layer.
  apply(layer, states, first) {
    const part = (name) => this.weights[`layers.${layer}.${name}`], epsilon = this.config.rms_norm_eps;
    const inputs = states.map((state) => normalise(state, part("input_layernorm"), epsilon));
    const keys = inputs.map((input, at) => this.heads(part("self_attn.k_proj"), input, part("self_attn.k_norm"), at));
    const values = inputs.map((input) => this.heads(part("self_attn.v_proj"), input));
    return states.slice(first).map((state, i) => {
      const at = first + i;
      const queries = this.heads(part("self_attn.q_proj"), inputs[at], part("self_attn.q_norm"), at);
      const attended = add(state, multiply(part("self_attn.o_proj"), this.attend(queries, keys, values, at)));
      const input = normalise(attended, part("post_attention_layernorm"), epsilon);
      const up = multiply(part("mlp.up_proj"), input);
      const gated = map(multiply(part("mlp.gate_proj"), input), (x, k) => x / (1 + Math.exp(-x)) * up[k]);
      return add(attended, multiply(part("mlp.down_proj"), gated));
    });
  }

  // A projection cut into heads; queries and keys are normalised and rotated.
  heads(projection, input, norm, position) {
    const { head_dim: size, rope_theta: theta, rms_norm_eps: epsilon } = this.config;
    const whole = multiply(projection, input), heads = [];
    for (let start = 0; start < whole.length; start += size) {
      const head = whole.subarray(start, start + size);
      heads.push(norm ? rotate(normalise(head, norm, epsilon), position, theta) : head);
    }
    return heads;
  }

  // The values that a position's heads take from it and from earlier positions. Several queries share a key.
  attend(queries, keys, values, position) {
    const { num_attention_heads: count, num_key_value_heads: groups, head_dim: size } = this.config;
    const result = new Float64Array(count * size);
    queries.forEach((query, head) => {
      const group = Math.floor(head * groups / count), logits = [];
      for (let at = 0; at <= position; at++) logits.push(dot(query, keys[at][group]) / Math.sqrt(size));
      softmax(logits).forEach((share, at) => {
        for (let i = 0; i < size; i++) result[head * size + i] += share * values[at][group][i];
      });
    });
    return result;
  }
}
