// Services to begin with. Each can be changed before it is created.

const service = (name, ports, more = {}) => {
  const annotations = more.annotations ? ['  annotations:', ...Object.entries(more.annotations).map(([key, value]) => `    ${key}: "${value}"`)] : [];
  return [
    'apiVersion: v1',
    'kind: Service',
    'metadata:',
    `  name: ${name}`,
    ...annotations,
    'spec:',
    '  type: LoadBalancer',
    ...(more.spec ?? []),
    `  selector: {app: ${name}}`,
    '  ports:',
    ...ports.flatMap(([port, portName, protocol]) => [`  - name: ${portName}`, `    port: ${port}`, `    protocol: ${protocol ?? 'TCP'}`]),
    '',
  ].join('\n');
};

/** Names that are taken get a number. */
function free(name, taken) {
  if (!taken.has(name)) return name;
  let number = 2;
  while (taken.has(`${name}-${number}`)) number += 1;
  return `${name}-${number}`;
}

/** `taken` are the names of Services in the namespace `default`. */
export function examples(taken) {
  return [
    { title: 'A web server', yaml: service(free('web', taken), [[80, 'http']]) },
    { title: 'Two ports', yaml: service(free('shop', taken), [[80, 'http'], [443, 'https']]) },
    { title: 'One that is refused', yaml: service(free('odd', taken), [[5000, 'calls', 'SCTP']]) },
  ];
}
