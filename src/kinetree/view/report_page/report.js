// Charts and instants of the report, tied to the time of the player.

const charts = [...document.querySelectorAll("svg.timed")].map((svg) => {
  const [t0, t1, x0, x1] = ["t0", "t1", "x0", "x1"].map((name) => Number(svg.dataset[name]));
  return { svg, t0, t1, x0, x1, cursor: svg.querySelector(".cursor") };
});
const instants = [...document.querySelectorAll("[data-t]")];

for (const { svg, t0, t1, x0, x1 } of charts) {
  let held = false;
  const choose = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    seekTime(t0 + ((x - x0) / (x1 - x0)) * (t1 - t0));
  };
  svg.addEventListener("pointerdown", (event) => {
    held = true;
    choose(event);
  });
  svg.addEventListener("pointermove", (event) => held && choose(event));
  for (const end of ["pointerup", "pointerleave"]) svg.addEventListener(end, () => { held = false; });
}
for (const button of instants) {
  button.addEventListener("click", () => seekTime(Number(button.dataset.t)));
  button.title = "show the motion at this instant";
}
watchers.push((now) => {
  for (const { cursor, t0, t1, x0, x1 } of charts) {
    const x = x0 + ((now - t0) / (t1 - t0 || 1)) * (x1 - x0);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
  }
  for (const button of instants) {
    button.classList.toggle("now", Math.abs(Number(button.dataset.t) - now) <= 0.51 * data.step);
  }
});

// Browsers print no pictures of a graphics processor: the motion is painted on a plain canvas for paper.
const paper = document.createElement("canvas");
paper.id = "paper";
byId("overlay").before(paper);
window.addEventListener("beforeprint", () => {
  paper.width = 0; // empty: the size follows in draw
  stage.paper = paper;
  draw();
});
window.addEventListener("afterprint", () => { stage.paper = null; });
draw();
