//! What the program in the sandbox talks to: a name server, and a TLS port in front of a plain one. And a client for us.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::Result;

/// No answer takes longer than this; it ends a hang.
const PATIENCE: Duration = Duration::from_mins(1);

/// Answers for one name, for as long as the process lives; of others it says that they are not there.
pub(crate) fn name_server(address: SocketAddr, name: &str) -> Result<()> {
    let socket = UdpSocket::bind(address).map_err(|why| format!("no name server at {address}: {why}"))?;
    let name = name.to_owned();
    thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((size, from)) = socket.recv_from(&mut query) {
            if let Some(answer) = query.get(..size).and_then(|query| answer(query, &name)) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    Ok(())
}

/// The answer to a query: 127.0.0.1 for the name, and no address of another kind.
fn answer(query: &[u8], name: &str) -> Option<Vec<u8>> {
    let header = query.get(..12)?;
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let question = query.get(12..at + 4)?;
    let kind = query.get(at..at + 2)?;
    let known = labels.join(".") == name;
    let with_address = known && kind == [0, 1];
    let mut answer = header.get(..2)?.to_vec();
    // A response to a recursive query; the code 3 says that there is no such name.
    answer.extend([0x81, if known { 0x80 } else { 0x83 }, 0, 1, 0, u8::from(with_address), 0, 0, 0, 0]);
    answer.extend(question);
    if with_address {
        // The name as in the question, an address of the Internet, for one second, of four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
    }
    Some(answer)
}

/// An authority of our own, with a port behind its certificate.
#[derive(Clone, Debug)]
pub(crate) struct TlsFront {
    pub(crate) address: SocketAddr,
    /// The certificate of the authority.
    pub(crate) authority: String,
}

/// Serves `name` with TLS, and hands every request on to `behind`.
pub(crate) fn tls_front(name: &str, behind: SocketAddr) -> Result<TlsFront> {
    let (config, authority) = certified(name).map_err(|why| format!("no certificate for {name}: {why}"))?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|why| format!("no port for TLS: {why}"))?;
    let address = listener.local_addr().map_err(|why| why.to_string())?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(std::result::Result::ok) {
            let config = Arc::clone(&config);
            thread::spawn(move || {
                let _ = hand_on(stream, config, behind);
            });
        }
    });
    Ok(TlsFront { address, authority })
}

fn certified(name: &str) -> std::result::Result<(Arc<ServerConfig>, String), Box<dyn std::error::Error>> {
    let mut authority = CertificateParams::new(Vec::<String>::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "image check");
    let authority_key = KeyPair::generate()?;
    let certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(vec![name.to_owned()])?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((Arc::new(config), certificate.pem()))
}

/// One request, one answer; then both connections end.
fn hand_on(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    behind: SocketAddr,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut client = BufReader::new(StreamOwned::new(ServerConnection::new(config)?, stream));
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if client.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            head.push_str("Connection: close\r\n\r\n");
            break;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body)?;
    let mut server = TcpStream::connect(behind)?;
    server.set_read_timeout(Some(PATIENCE))?;
    server.write_all(head.as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    let client = client.get_mut();
    client.write_all(&answer)?;
    client.conn.send_close_notify();
    client.flush()?;
    Ok(())
}

/// A server that we ask, and how we know it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) name: String,
    /// The certificate of its authority.
    pub(crate) authority: String,
    pub(crate) token: String,
}

impl Client {
    /// The status and the body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let failed = |why: String| format!("{method} {path} at {}: {why}", self.address);
        self.attempt(method, path, body).map_err(|why| failed(why.to_string()))
    }

    fn attempt(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> std::result::Result<(u16, String), Box<dyn std::error::Error>> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.authority.as_bytes()) {
            roots.add(certificate?)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(self.name.clone())?;
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut stream = StreamOwned::new(ClientConnection::new(Arc::new(config), name)?, stream);
        // In version 1.0 an answer ends with its connection.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.name,
            self.token,
            body.len()
        )?;
        stream.flush()?;
        let mut answer = Vec::new();
        // A peer that ends without a goodbye has still said all that its length promised.
        if let Err(why) = stream.read_to_end(&mut answer)
            && answer.is_empty()
        {
            return Err(why.into());
        }
        let answer = String::from_utf8(answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer has no end of its header")?;
        let status = head.split(' ').nth(1).ok_or("the answer has no status")?.parse()?;
        Ok((status, body.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u8) -> Vec<u8> {
        let mut query = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(u8::try_from(label.len()).unwrap());
            query.extend(label.bytes());
        }
        query.extend([0, 0, kind, 0, 1]);
        query
    }

    #[test]
    fn one_name_has_an_address_and_others_are_not_there() {
        let table = [("cloud.test", 1, 0x80, 1), ("CLOUD.test", 1, 0x80, 1), ("cloud.test", 28, 0x80, 0)];
        for (name, kind, code, answers) in table.into_iter().chain([("other.test", 1, 0x83, 0)]) {
            let answer = answer(&query(name, kind), "cloud.test").unwrap();
            assert_eq!(
                (answer[0], answer[1], answer[3], answer[7]),
                (0xab, 0xcd, code, answers),
                "{name} {kind}"
            );
            assert_eq!(answer.ends_with(&[127, 0, 0, 1]), answers == 1);
        }
        assert_eq!(answer(&[0; 5], "cloud.test"), None);
        assert_eq!(answer(query("cloud.test", 1).get(..20).unwrap(), "cloud.test"), None);
    }

    #[test]
    fn a_request_goes_through_tls_and_only_with_the_right_authority() {
        let plain = TcpListener::bind("127.0.0.1:0").unwrap();
        let behind = plain.local_addr().unwrap();
        thread::spawn(move || {
            for stream in plain.incoming().map_while(std::result::Result::ok) {
                let mut reader = BufReader::new(stream);
                let lines: Vec<String> = reader
                    .by_ref()
                    .lines()
                    .map_while(|line| line.ok().filter(|line| !line.is_empty()))
                    .collect();
                let mut body = [0; 4];
                reader.read_exact(&mut body).unwrap();
                let text = format!("{} {} {}", lines[0], String::from_utf8_lossy(&body), lines.len());
                write!(reader.get_mut(), "HTTP/1.0 201 Created\r\n\r\n{text}").unwrap();
            }
        });
        let front = tls_front("cloud.test", behind).unwrap();
        let client = Client {
            address: front.address,
            name: "cloud.test".to_owned(),
            authority: front.authority.clone(),
            token: "t".to_owned(),
        };
        let (status, body) = client.ask("POST", "/things", "body").unwrap();
        assert_eq!(status, 201);
        assert!(body.starts_with("POST /things HTTP/1.0 body "), "{body}");
        let stranger = tls_front("cloud.test", behind).unwrap();
        let wrong = Client { authority: stranger.authority, ..client.clone() };
        assert!(wrong.ask("POST", "/things", "body").unwrap_err().contains("certificate"));
        let other = Client { name: "other.test".to_owned(), ..client };
        assert!(other.ask("POST", "/things", "body").unwrap_err().contains("certificate"));
    }
}
