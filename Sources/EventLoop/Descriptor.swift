import Glibc

/// Sole owner of one open file descriptor. Closing is what happens when the owner goes away.
package struct Descriptor: ~Copyable, Sendable {
    package let rawValue: CInt

    package init(adopting rawValue: CInt) {
        precondition(rawValue >= 0, "only an open descriptor has an owner")
        self.rawValue = rawValue
    }

    deinit { _ = close(rawValue) }

    /// Hands the descriptor to an owner that closes it itself.
    package consuming func release() -> CInt {
        let fd = rawValue
        discard self
        return fd
    }
}
