/** Words that only the name of a secret has. */
const SECRET_WORDS = new Set(
  "apikey assertion auth authorization cookie credential credentials dpop jwt passphrase passwd password secret session sessionid token".split(
    " ",
  ),
);

/** Whose key is a secret; other keys only name something. */
const KEY_OWNERS = new Set(
  "access account admin api app client customer encryption functions private service subscription".split(" "),
);

/** Whether a header carries a secret, as far as its name in lower case says. */
export function isSecretHeader(name: string): boolean {
  const words = name.split(/[-_]/);
  return words.some((word, at) => SECRET_WORDS.has(word) || (word === "key" && KEY_OWNERS.has(words[at - 1] ?? "")));
}
