import Glibc

/// The table of a hosts file: hosts(5), one address and its names per line, comments from `#` on.
struct HostsFile {
    private(set) var addresses: [String: [SocketAddress]] = [:]

    /// The most that is read. A worker reads the file between other work, so a larger one would delay its clients.
    static let bytesMax = 4 << 20

    init() {}

    /// Lines without a valid address are skipped, as the C library does.
    init(text: [UInt8]) {
        for line in text.split(separator: UInt8(ascii: "\n")) {
            let words = line.prefix { $0 != UInt8(ascii: "#") }.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
            guard words.count >= 2, let address = SocketAddress(literal: String(decoding: words[0], as: UTF8.self))
            else { continue }
            for word in words.dropFirst() {
                let name = Resolver.normalised(String(decoding: word, as: UTF8.self).lowercased())
                if addresses[name]?.contains(address) != true { addresses[name, default: []].append(address) }
            }
        }
    }

    /// Reads the file. A file that is not there or cannot be read has no lines.
    init(path: String) {
        self.init(text: HostsFile.bytes(of: path))
    }

    private static func bytes(of path: String) -> [UInt8] {
        let fd = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard fd >= 0 else { return [] }
        let descriptor = Descriptor(adopting: fd)
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count < bytesMax {
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe read(descriptor.rawValue, buffer.baseAddress, buffer.count)
            }
            guard count > 0 else { break }
            bytes += chunk.prefix(count)
        }
        return bytes
    }
}
