// Before anything is painted: the scheme that was chosen here, else the system's.
(() => {
  const chosen = localStorage.getItem("streamgauge.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
