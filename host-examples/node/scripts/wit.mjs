// Reads the interface files of `wit/` into plain data: types and function signatures by name.
//
// Reads only the WIT constructs that this project uses (use, type, enum, record, variant, func) and
// throws on any other, so that a new construct is noticed at build time. Generates no code.

/** Splits WIT text into words and punctuation, without comments. */
function tokenize(text) {
  const stripped = text.replace(/\/\/[^\n]*/g, " ");
  return stripped.match(/->|[A-Za-z%_][\w-]*|[{}()<>:;,=.@_]|[\d.]+/g) ?? [];
}

class Parser {
  constructor(tokens, scope) {
    this.tokens = tokens;
    this.scope = scope;
    this.at = 0;
  }
  peek() {
    return this.tokens[this.at];
  }
  next() {
    return this.tokens[this.at++];
  }
  take(expected) {
    const token = this.next();
    if (token !== expected) throw new Error(`wit: expected ${expected}, found ${token}`);
  }
  skipTo(token) {
    while (this.next() !== token) {
      if (this.at > this.tokens.length) throw new Error(`wit: missing ${token}`);
    }
  }
  /** Reads `open item, item, close`. */
  listed(open, close, item) {
    const items = [];
    this.take(open);
    while (this.peek() !== close) {
      items.push(item());
      if (this.peek() === ",") this.next();
    }
    this.take(close);
    return items;
  }
  type() {
    const name = this.next();
    if (["list", "option"].includes(name)) {
      return { [name]: this.listed("<", ">", () => this.type())[0] };
    }
    if (name === "tuple") return { tuple: this.listed("<", ">", () => this.type()) };
    if (name === "result") {
      if (this.peek() !== "<") return { result: null };
      const [ok] = this.listed("<", ">", () => this.type());
      return { result: ok === "_" ? null : ok };
    }
    return this.scope.get(name) ?? name;
  }
  field() {
    const name = snake(this.next());
    this.take(":");
    return [name, this.type()];
  }
  variantCase() {
    const name = this.next();
    if (this.peek() !== "(") return [name, null];
    return [name, this.listed("(", ")", () => this.type())[0]];
  }
}

function snake(name) {
  return name.replace(/^%/, "").replaceAll("-", "_");
}

function readUse(parser, scope, scopes) {
  const from = parser.next();
  parser.take(".");
  for (const name of parser.listed("{", "}", () => parser.next())) {
    scope.set(name, scopes.get(from).get(name));
  }
  parser.take(";");
}

function readItem(parser, interfaceName, output, scope) {
  const define = (name, shape) => {
    output.types[`${interfaceName}.${name}`] = shape;
    scope.set(name, { ref: `${interfaceName}.${name}` });
  };
  const word = parser.next();
  if (word === "type") {
    const name = parser.next();
    parser.take("=");
    scope.set(name, parser.type());
    parser.take(";");
  } else if (word === "enum") {
    define(parser.next(), { enum: parser.listed("{", "}", () => parser.next()) });
  } else if (word === "record") {
    define(parser.next(), { record: parser.listed("{", "}", () => parser.field()) });
  } else if (word === "variant") {
    define(parser.next(), { variant: parser.listed("{", "}", () => parser.variantCase()) });
  } else {
    parser.take(":");
    parser.take("func");
    const params = parser.listed("(", ")", () => parser.field());
    let result = null;
    if (parser.peek() === "->") {
      parser.next();
      result = parser.type();
    }
    parser.take(";");
    output.functions[`${interfaceName}.${snake(word)}`] = { params, result };
  }
}

/**
 * Returns the types and functions of the given WIT files.
 *
 * `types` maps `interface.name` to `{record}`, `{enum}` or `{variant}`; `functions` maps
 * `interface.function` to `{params: [[name, type]], result}`. Names of fields, parameters and
 * functions are snake_case, cases stay kebab-case.
 */
export function readWit(texts) {
  const bodies = new Map();
  for (const text of texts) {
    const tokens = tokenize(text);
    const start = tokens.indexOf("interface");
    if (start >= 0) bodies.set(tokens[start + 1], tokens.slice(start + 2));
  }
  const output = { types: {}, functions: {} };
  const scopes = new Map();
  const names = ["types", ...[...bodies.keys()].filter((name) => name !== "types").sort()];
  for (const name of names) {
    const scope = new Map();
    scopes.set(name, scope);
    const parser = new Parser(bodies.get(name), scope);
    parser.take("{");
    while (parser.peek() !== "}") {
      if (parser.peek() === "use") {
        parser.next();
        readUse(parser, scope, scopes);
      } else {
        readItem(parser, name, output, scope);
      }
    }
  }
  return output;
}
