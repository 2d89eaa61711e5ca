// The panels of the page, one per mode. To add one: write panels/NAME.js, import it here and put it in the list.
//
// A module exports `panel`:
//
//   name     the word in the header, e.g. "Move"
//   key      the key that chooses it, one letter or digit that no other panel has; shown in its tooltip
//   title    one sentence for the tooltip: what a reader does here
//   needs    names of kernel functions without which the panel is not offered; [] for none
//   suits    optional: suits(app) -> boolean; false hides the panel, e.g. for open mechanisms
//   reason   optional: reason(app) -> a sentence why this mechanism does not suit it, "" for none: its name then stays
//            in the header, grey, and shows the sentence
//   later    optional: true for a panel in which a page does not open if it has another one
//   build    build(host, app) -> part: makes the left column inside of `host`, an empty element, once, when the mode is
//            first chosen
//
// `app` is what a panel may use:
//
//   app.data     the data of the page: model, scene, first, run, arrows (page/data.py)
//   app.model    bodies, joints, coordinates, velocities, frames, loops, parameters (page/data.py). Its numbers
//                are those that the reader typed last: read them where they are used, and keep no copies
//   app.table    the table of the mechanism and its changes (editing.js); undefined in a page without one
//   app.store    state and subscriptions (store.js). Fields: mode, q, qd, parameters, time, playing, speed, motion,
//                ghost, picked (body or -1), hidden (Set of bodies), show (names of toggles), units, theme, message
//   app.kernel   functions of the mechanism by name (kernel.js); null in a page that only replays
//   app.stage    the picture (stage.js); app.stage.view.grabbers takes functions that may take over a drag
//   app.player   time (player.js);  app.plots  curves (plots.js);  app.keys  keys (keys.js)
//   app.moveTo(q, { held, undo })   set the coordinates by hand: closes loops, stops the player, returns
//                                   whether it closed
//   app.matrices(q)                 poses of all bodies as matrices of the stage
//   app.say(text)                   a sentence at the foot of the stage, "" to remove it
//   app.open(data, { mode, state, hash })   show another mechanism, such as server.call(...).data: a Promise of the app
//                                   that takes the place of this one. Units, theme and mode stay; `state` has other
//                                   fields of the store, `hash` a link to a state
//                                   (structure_history.js passes the mechanisms to which undo goes back)
//   app.session                     a table that stays from one mechanism to the next, until the page is closed
//
// What needs Python calls the studio: `import { server } from "../server.js"`, which is null in a page from a file.
// Hide what needs it then.
//
// What `build` returns, every entry optional:
//
//   enter(), leave()   when the mode is chosen, and when another one is
//   layer()            what the stage draws on top, at every picture: { items, lines, marks, labels, arrows },
//                      as stage.js describes them
//   charts()           curves: [{ title, unit, series }] (plots.js). Call app.plots.show(part.charts()) when
//                      they change
//   python()           lines of Python that do the same, as one text;  toml()  the experiment as TOML
//
// State that must survive undo, links and a change of the mode belongs into the store: store.define(name, value,
// { undo: true, link: true }). Elements come from elements.js and controls.js; names of the model only as text.

import { panel as forward } from "./forward.js";
import { panel as inverse } from "./inverse.js";
import { panel as joints } from "./joints.js";
import { panel as kinematics } from "./kinematics.js";
import { panel as loops } from "./loops.js";
import { panel as model } from "./model.js";
import { panel as motion } from "./motion.js";
import { panel as recursion } from "./recursion.js";
import { panel as run } from "./run.js";
import { panel as transform } from "./transform.js";

// A page that cannot use a panel may leave out its module (page/script.py).
export const PANELS = [model, run, kinematics, joints, transform, motion, inverse, forward, recursion, loops].filter(
  Boolean,
);
