import Glibc

/// Two sockets that are connected with each other and have no name: a connection within this process.
package struct SocketPair: ~Copyable {
    private var one: Descriptor?
    private var other: Descriptor?

    /// Nil if there are no descriptors left.
    package init?() {
        var pair: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0 else { return nil }
        one = Descriptor(adopting: pair[0])
        other = Descriptor(adopting: pair[1])
    }

    /// One of the two ends. Can be called twice.
    package mutating func takeEnd() -> Descriptor {
        if let end = one.take() { return end }
        guard let end = other.take() else { preconditionFailure("a pair has two ends") }
        return end
    }
}
