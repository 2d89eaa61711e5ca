// The script of a page is compressed; the policy of the page lets the browser run it by its hash, as it does this one.
(async () => {
  const say = (error) => {
    const line = document.createElement("p");
    const browsers = "Chrome, Edge, Firefox or Safari";
    line.textContent = `The page cannot start: ${error.message}. Use a current version of ${browsers}.`;
    document.body.prepend(line);
  };
  try {
    const bytes = Uint8Array.from(atob(document.getElementById("code").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.id = "running";
    script.textContent = await new Response(stream).text();
    document.body.append(script);
  } catch (error) {
    say(error);
  }
})();
