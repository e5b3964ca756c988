/// What tells this Larder from others in `Via`, so that a request that comes back is recognised (RFC 9110 §7.6.3).
///
/// The lines are made once: each request to an origin takes one of them along.
package final class Instance: Sendable {
    package let name: [UInt8]
    /// The line that Larder adds to a request that came by HTTP/1.0.
    let viaLine10: [UInt8]
    /// The same by HTTP/1.1.
    let viaLine11: [UInt8]

    /// - Parameter name: letters and digits, the same from start to stop, and no other Larder's.
    package init(_ name: [UInt8]) {
        self.name = name
        viaLine10 = Array("Via: 1.0 larder (".utf8) + name + Array(")\r\n".utf8)
        viaLine11 = Array("Via: 1.1 larder (".utf8) + name + Array(")\r\n".utf8)
    }
}
