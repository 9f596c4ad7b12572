// The documentation's forms: send what stands in them, show what comes back.

for (const form of document.querySelectorAll("form.try")) {
  const [body, shown] = [form.querySelector("textarea"), form.querySelector("pre")];
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    shown.hidden = false;
    shown.textContent = "…";
    const asked = { method: form.dataset.verb };
    if (body) Object.assign(asked, { headers: { "Content-Type": "application/json" }, body: body.value });
    try {
      const answer = await fetch(form.dataset.path, asked);
      const text = await answer.text();
      shown.textContent = `${answer.status} ${answer.statusText}\n${pretty(text).slice(0, 20_000)}`;
    } catch (error) {
      shown.textContent = `No answer: ${error.message}`;
    }
  });
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
