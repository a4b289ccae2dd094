// The dialogs to edit a held message, field by field, or to answer it in its receiver's name.

import { byId, element, write } from "./elements.js";

/**
 * Edit the values of a message, and let it go with them.
 *
 * @param {import("./held_messages.js").HeldMessages} held
 * @param {object} message
 * @param {(sentence: string) => void} done
 */
export function editHeld(held, message, done) {
  const fields = new Map();
  const lines = message.values.map(({ field, value }, place) => {
    const hint = element("p", { id: `held-error-${place}`, class: "held-error", role: "alert" });
    const input = element("input", {
      id: `held-value-${place}`,
      type: "text",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      "aria-describedby": hint.id,
    });
    input.value = value;
    fields.set(field, { input, hint });
    return element("div", { class: "held-field" }, element("label", { for: input.id }, field), input, hint);
  });
  if (!lines.length) lines.push(element("p", {}, "no editable values"));
  openDialog(`Edit ${message.name} from ${message.sender}`, lines, "Forward", async () => {
    for (const { input, hint } of fields.values()) showFieldError(input, hint, "");
    const values = Object.fromEntries([...fields].map(([field, { input }]) => [field, input.value]));
    try {
      await held.act({ do: "change", number: message.number, values });
    } catch (error) {
      const errors = Object.entries(error.slips ?? {}).filter(([field]) => fields.has(field));
      if (!errors.length) throw error;
      for (const [field, sentence] of errors) {
        const { input, hint } = fields.get(field);
        showFieldError(input, hint, sentence);
      }
      fields.get(errors[0][0]).input.focus();
      return;
    }
    closeDialog();
    done(`${message.name} was edited and forwarded`);
  });
}

/**
 * Send a message to the sender, as if from the receiver.
 *
 * @param {import("./held_messages.js").HeldMessages} held
 * @param {object} message
 * @param {(sentence: string) => void} done
 */
export function answerHeld(held, message, done) {
  const input = element("input", {
    id: "held-answer",
    type: "text",
    list: "held-names",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: "NAME field=value",
  });
  const line = element(
    "div",
    { class: "held-field" },
    element("label", { for: input.id }, `As if from ${message.receiver}`),
    input,
    element("datalist", { id: "held-names" }, ...message.answers.map((name) => element("option", { value: name }))),
  );
  openDialog(`Answer ${message.sender}; ${message.name} remains held`, [line], "Send", async () => {
    await held.act({ do: "answer", number: message.number, text: input.value.trim() });
    closeDialog();
    done(`${message.name} was answered`);
  });
}

/** Show a dialog with a form; `send` may throw, and closes it. */
export function openDialog(title, lines, words, send) {
  const why = element("p", { class: "held-error", role: "alert" });
  const form = byId("held-form");
  write(byId("held-title"), title);
  form.replaceChildren(
    ...lines,
    why,
    element(
      "p",
      { class: "held-buttons" },
      element("button", { type: "submit", class: "is-main" }, words),
      element("button", { type: "button", onclick: closeDialog }, "Back"),
    ),
  );
  form.onsubmit = async (event) => {
    event.preventDefault();
    write(why, "");
    try {
      await send();
    } catch (error) {
      write(why, error.message);
    }
  };
  byId("held-dialog").showModal();
  form.querySelector("input")?.focus();
}

export function closeDialog() {
  byId("held-dialog").close();
}

function showFieldError(input, hint, sentence) {
  write(hint, sentence);
  if (sentence) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}
