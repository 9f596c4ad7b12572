// The page of whoever has not signed in: sends the token, which stays out of every address. A link may carry it behind
// the #, which browsers do not send: #token=….

const form = document.getElementById("sign-in");
const field = document.getElementById("token");
const said = document.getElementById("said");

async function signIn(token) {
  const answer = await fetch("/sign-in", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
  if (answer.ok) return location.reload();
  said.textContent = (await answer.json()).message;
  return field.select();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(field.value);
});

const asked = new URLSearchParams(location.hash.slice(1));
const token = asked.get("token");
if (token) {
  asked.delete("token");
  history.replaceState(null, "", `#${asked}`);
  signIn(token);
}
