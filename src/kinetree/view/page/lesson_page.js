// The entry of a page with a lesson.

import { buildLesson } from "./lesson.js";
import { open } from "./opening.js";

open(buildLesson);
