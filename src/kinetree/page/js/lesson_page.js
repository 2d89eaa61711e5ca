// The entry of pages that have a lesson, or may open one.

import { buildLesson } from "./lesson.js";
import { open } from "./opening.js";

open(buildLesson);
