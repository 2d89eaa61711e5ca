// What the page cannot compute: contact. A reader must not take a fall through the floor for the motion of the
// mechanism.

import { server } from "./server.js";

// Frames that may touch a floor: named ones of a mechanism that floats under gravity and has neither contacts nor
// loops.
export function touchingFrames({ bodies, contacts, frames, gravity, joints, loops }) {
  const floats = joints.some((joint, i) => joint.floats && bodies[i].parent < 0) && Math.hypot(...gravity) > 0;
  return floats && !contacts.length && !loops.length ? frames.filter((f) => f.body >= 0).map((f) => f.name) : [];
}

export const listed = (names) =>
  names.length > 6 ? `${names.slice(0, 5).join(", ")} and ${names.length - 5} more` : names.join(", ");

// A sentence for the mode Simulate; "" where contact is not missing.
export function contactNote(model) {
  const { contacts } = model;
  if (contacts.length) {
    const where = server
      ? '"Run in Python" below computes them.'
      : "kt.simulate in Python computes them, and so does the studio (kinetree studio).";
    return (
      `This mechanism has ${contacts.length === 1 ? "a contact" : "contacts"}: ` +
      `${listed(contacts.map((c) => c.name))}. The page computes without contact: here bodies pass through the ` +
      `floor and through each other. ${where}`
    );
  }
  const frames = touchingFrames(model);
  if (!frames.length) return "";
  const where = server
    ? '"Run in Python" below lets its frames touch the floor.'
    : 'In the studio (kinetree studio), "Run in Python" lets its frames touch the floor.';
  return `This mechanism floats and has no contacts: here it falls through the floor. ${where}`;
}
