/// A fetch, as the admin server reports it.
package struct FetchDescription: Sendable {
    package var uri: [UInt8]
    package var age: Duration
    /// Bytes of the body received so far.
    package var received: UInt64
    /// The length in bytes that the origin announced. Nil if unknown.
    package var expected: UInt64?
    /// Clients that wait for the response or read it, as far as this fetch knows them.
    package var readers: Int
    package var isStored: Bool
}
