// What can be judged about a page without an eye: names of controls, contrast, what is too small or out of sight.
// Runs in the page.

export function audit() {
  const found = [];
  const isShown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length > 0;
  const told = (element) => `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}.${[...element.classList].join(".")} “${element.textContent.trim().slice(0, 40)}”`;
  const named = (element) => {
    const by = (element.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("");
    return (element.getAttribute("aria-label") || by || element.labels?.[0]?.textContent || element.textContent || element.getAttribute("alt") || "").trim();
  };
  if (!document.documentElement.lang) found.push("the page has no language");
  if (!document.title) found.push("the page has no title");
  if ([...document.querySelectorAll("main, [role=main]")].filter(isShown).length > 1) found.push("there are several main parts");
  for (const element of document.querySelectorAll("a[href], button, input, select, textarea, summary, [role=button], [role=treeitem], [role=region], [role=feed], dialog, img, nav, aside")) {
    if (isShown(element) && !named(element)) found.push(`no name: ${told(element)}`);
  }
  for (const element of document.querySelectorAll("svg")) if (isShown(element) && element.getAttribute("aria-hidden") !== "true" && !element.getAttribute("aria-label")) found.push(`a drawing has no name: ${told(element.parentElement)}`);
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`an id is there twice: ${id}`);
  for (const element of document.querySelectorAll("[aria-controls], [for], [aria-describedby]")) {
    const id = element.getAttribute("aria-controls") ?? element.getAttribute("for") ?? element.getAttribute("aria-describedby");
    if (!document.getElementById(id)) found.push(`${told(element)} names nothing: ${id}`);
  }
  for (const element of document.querySelectorAll("[onclick], [style*=expression], script:not([src]), style")) found.push(`inline: ${told(element)}`);

  const parse = (text) => {
    const [, numbers] = /rgba?\(([^)]+)\)/.exec(text) ?? [];
    if (!numbers) return [0, 0, 0, 0];
    const [r, g, b, a = 1] = numbers.split(/[ ,/]+/).filter(Boolean).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const opacity = (element) => (element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1);
  const light = (colour) => colour.slice(0, 3).map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)).reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || seen.has(element) || !isShown(element) || element.closest("option, title")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const below = ground(element);
    const colour = parse(element.closest("svg") ? style.fill : style.color);
    const text = over([...colour.slice(0, 3), colour[3] * opacity(element)], below);
    const [one, other] = [light(text), light(below)].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (contrast < least) found.push(`contrast ${contrast.toFixed(2)}: ${told(element)}`);
    if (size < 11) found.push(`${size}px is too small: ${told(element)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth - innerWidth}px too wide`);
  for (const element of document.querySelectorAll("button, a[href], input, select, textarea")) {
    if (!isShown(element) || element.closest(".prose, .skip, .note, .tree, .pairs") ) continue;
    const { width, height } = element.getBoundingClientRect();
    if (width < 14 || height < 20) found.push(`too small to hit (${Math.round(width)} × ${Math.round(height)}): ${told(element)}`);
  }
  return found;
}
