// The messages of the writer in Node; `message.py` has those of the others.

const ESCAPES = ["\\u00fc", '\\"quoted\\"', "tab\\t", "line\\nline"];
const SPICE = ["caf\u00e9", "\u{1f980}", ...ESCAPES, "\u2028"];

/** Returns a message as JSON text, with a unique id and varied spacing and escapes. */
export function message(writer, number) {
  const spice = SPICE[number % SPICE.length];
  const words = `${spice} word${number} `.repeat(5 + ((number * 37) % 90));
  const space = " ".repeat(number % 3);
  const role = number % 2 === 0 ? "user" : "assistant";
  return `{"id":${space}"${writer}-${number}","role":"${role}",${space}"content":"${words}"}`;
}
