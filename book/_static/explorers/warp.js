// What explorers of one access of a warp share: the choice of the lanes that take part, and the Python that counts it.

import { FULL_MASK, ModelError } from "./model.js";

const MASKS = { all: FULL_MASK, half: 0x0000ffff, even: 0x55555555, one: 0x00000001 };

/** Which lanes are active: the parameters `lanes` and `mask`. */
export const LANE_CONTROLS = [
  {
    name: "lanes",
    label: "Active lanes",
    kind: "select",
    options: [
      ["all", "all 32"],
      ["half", "the first half"],
      ["even", "the even ones"],
      ["one", "lane 0 alone"],
      ["hex", "by a mask"],
    ],
  },
  {
    name: "mask",
    label: "Lane mask, hexadecimal",
    kind: "text",
    pattern: "(0x)?[0-9a-fA-F]{1,8}",
    shown: (state) => state.lanes === "hex",
  },
];

/** The mask that a state chooses. */
export function maskOf(state) {
  if (state.lanes !== "hex") return MASKS[state.lanes];
  if (!/^(0x)?[0-9a-f]{1,8}$/i.test(state.mask.trim())) {
    throw new ModelError(
      "InvalidAccess",
      `Lane mask: '${state.mask}' is not a mask. Give 1 to 8 hexadecimal digits, such as 0000ffff; bit i is lane i.`,
    );
  }
  return Number.parseInt(state.mask.trim().replace(/^0x/i, ""), 16);
}

/** The mask as an argument of Python's constructors: none where all lanes take part. */
export function maskInPython(mask) {
  return mask === FULL_MASK ? [] : [`active_mask=0x${mask.toString(16).padStart(8, "0")}`];
}

/** Lines of Python that build an access and print what `cost` counts. */
export function listing(cost, constructor, given) {
  return `import lanewise as lw\n\n${built(constructor, given)}\nprint(lw.${cost}(access))`;
}

function built(constructor, given) {
  const one = `access = lw.WarpAccess.${constructor}(${given.join(", ")})`;
  return one.length > 76 ? `access = lw.WarpAccess.${constructor}(\n    ${given.join(",\n    ")},\n)` : one;
}
