// The entry of the page.

import { open } from "./opening.js";

open();
