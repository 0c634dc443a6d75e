// A fan-out as people write it for Node: whoever GETs is a subscriber, what is POSTed goes to all of them.
// Prints the port it listens at.
import { createServer } from 'node:http';

const subscribers = new Set();
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    response.write(': connected\n\n');
    subscribers.add(response);
    request.on('close', () => subscribers.delete(response));
    return;
  }
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const frames = Buffer.concat(pieces);
    for (const subscriber of subscribers) subscriber.write(frames);
    response.writeHead(200, { 'content-length': 2 });
    response.end('{}');
  });
});
server.listen(0, '127.0.0.1', 4096, () => console.log(server.address().port));
