// The worker that all tabs of the page share: it has their one connection.

import { Stream } from "./stream.js";

const stream = new Stream();

onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data: { app, token } }) => {
    if (app === null) return stream.leave(port);
    stream.join(port, token, {
      app,
      update: (state) => port.postMessage({ state }),
      broken: (wrong) => port.postMessage({ wrong }),
      unauthorized: () => port.postMessage({ unauthorized: token }),
    });
  };
};
