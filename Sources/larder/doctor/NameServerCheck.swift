import EventLoop
import Glibc
import Message
import Provisioning
import Server
import Settings

/// Asks each name server for the servers of the root (RFC 1035 §4.1), which every one can answer, and waits 2 seconds at most.
///
/// - Parameter servers: those of `dns.servers`. Empty: those of /etc/resolv.conf.
func nameServerChecks(_ servers: [ListenAddress]) -> [ServerCheck] {
    let addresses = servers.isEmpty ? systemServers() : servers.compactMap(address)
    guard !addresses.isEmpty else {
        return [
            ServerCheck(
                name: "name server", state: .wrong, text: "there is none in /etc/resolv.conf",
                mend: "add one, or set dns.servers")
        ]
    }
    return addresses.map { server in
        answers(server)
            ? ServerCheck(name: "name server", state: .ok, text: "\(server) answers")
            : ServerCheck(
                name: "name server", state: .wrong, text: "\(server) does not answer",
                mend: "remove it, or set dns.servers")
    }
}

private func address(_ server: ListenAddress) -> SocketAddress? {
    guard case .tcp(let address, let port) = server else { return nil }
    return SocketAddress(address, port: port)
}

private func systemServers() -> [SocketAddress] {
    do throws(FileError) {
        let lines = String(decoding: try readFile("/etc/resolv.conf"), as: UTF8.self).split(separator: "\n")
        return lines.compactMap { line in
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard words.count >= 2, words[0] == "nameserver" else { return nil }
            return IPAddress(strict: Array(words[1].utf8)).map { SocketAddress($0, port: 53) }
        }
    } catch { return [] }
}

private func answers(_ server: SocketAddress) -> Bool {
    let raw = socket(
        server.family == .v6 ? AF_INET6 : AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard raw >= 0 else { return false }
    let descriptor = Descriptor(adopting: raw)
    var limit = timeval(tv_sec: 2, tv_usec: 0)
    _ = unsafe setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let isConnected = unsafe server.withSockaddr {
        unsafe connect(raw, $0.assumingMemoryBound(to: sockaddr.self), $1) == 0
    }
    guard isConnected else { return false }
    // One question, with recursion: the name of no labels, NS (2), IN (1).
    let question: [UInt8] = [0x4C, 0x64, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]
    guard unsafe send(descriptor.rawValue, question, question.count, 0) == question.count else { return false }
    var answer = [UInt8](repeating: 0, count: 1500)
    let count = unsafe answer.withUnsafeMutableBytes { unsafe recv(raw, $0.baseAddress, $0.count, 0) }
    return count >= 12 && answer[0] == question[0] && answer[1] == question[1] && answer[2] & 0x80 != 0
}
