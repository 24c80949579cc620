// Before the first paint: the theme that was chosen here, so that nothing flashes. The rest is parts/theme.js'.
(function () {
  try {
    var chosen = localStorage.getItem("hourhand.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (refused) {
    // storage may be forbidden; the system's theme then holds
  }
})();
