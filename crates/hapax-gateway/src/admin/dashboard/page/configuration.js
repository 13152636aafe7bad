// What is in force.

import { get } from "./api.js";
import { card, head, make } from "./elements.js";

export const configuration = {
  title: "Configuration",
  isRenewed: true,
  async show(main) {
    const { version, lines } = await get("/configuration");
    const notes = lines.filter((line) => line.startsWith("note: "));
    const said = lines.filter((line) => !line.startsWith("note: "));
    main.replaceChildren(
      head("Configuration", `Hapax ${version}. What hapax check-config says of what is in force; secrets are not shown.`),
      make("div", { class: "stack" },
        card("In force", list(said)),
        notes.length > 0 && card("To know", list(notes.map((line) => line.slice("note: ".length))))),
    );
  },
};

const list = (lines) => make("ul", { class: "lines" }, lines.map((line) => make("li", null, line)));
