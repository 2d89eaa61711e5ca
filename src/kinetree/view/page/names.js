// Labels as short as they can be told apart: a beginning or an end that all of them share, up to "_", ".", "-" or " ", is left out.

export function shortLabels(labels) {
  if (labels.length < 2) return labels;
  const [head, tail] = [shared(labels), shared(labels.map(reversed))];
  const cut = labels.map((label) => label.slice(head, label.length - tail));
  return cut.every((label) => label) && new Set(cut).size === new Set(labels).size ? cut : labels;
}

const reversed = (text) => [...text].reverse().join("");

// The length of the shared beginning that ends at a separator.
function shared(labels) {
  let length = 0;
  for (let k = 0; labels.every((label) => label[k] !== undefined && label[k] === labels[0][k]); k++) {
    if (/[_.\- ]/.test(labels[0][k])) length = k + 1;
  }
  return length;
}
