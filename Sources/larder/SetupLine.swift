import ClientSetup
import EventLoop
import Server
import TLS

/// What `serve` prints for those who set up clients. Nil without an authority.
func setupLine(_ snapshot: Snapshot, at addresses: [SocketAddress]) -> String? {
    let fingerprints = snapshot.pages.roots.map(fingerprint)
    guard !fingerprints.isEmpty, let address = addresses.first(where: { $0.family != .unix }) else { return nil }
    return "clients: curl -fsS http://\(address)/setup.sh | sh -s -- --ca-sha256 \(fingerprints.joined(separator: ","))"
}

/// The SHA-256 of a certificate in DER: 64 hexadecimal digits.
func fingerprint(_ certificate: [UInt8]) -> String {
    Digest.sha256(certificate).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
