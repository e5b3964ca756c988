import CHiredis

/// Commands as a server reads them: arrays of bulk strings, with the formatter of hiredis.
package enum RedisCommand {
    /// The most arguments of one command, its name included.
    package static let argumentCountMax = 1024
    /// The most bytes of all arguments of one command.
    package static let argumentBytesMax = 64 << 20

    /// Appends a command to bytes that will be sent.
    ///
    /// - Parameter arguments: the name of the command and what follows. Each may have any bytes, and none.
    package static func append(_ arguments: [[UInt8]], to output: inout [UInt8]) {
        var pointers: [UnsafePointer<CChar>?] = unsafe []
        unsafe pointers.reserveCapacity(arguments.count)
        unsafe borrow(arguments[...], &pointers) { pointers in
            unsafe format(pointers, lengths: arguments.map(\.count), to: &output)
        }
    }

    /// Appends a command whose last argument lies elsewhere, such as the value of `SETEX key seconds value`. It is not copied before it is
    /// formatted.
    package static func append(_ arguments: [[UInt8]], value: Span<UInt8>, to output: inout [UInt8]) {
        var pointers: [UnsafePointer<CChar>?] = unsafe []
        unsafe pointers.reserveCapacity(arguments.count + 1)
        unsafe value.withUnsafeBytes { last in
            unsafe borrow(arguments[...], &pointers) { pointers in
                unsafe pointers.append(last.baseAddress?.assumingMemoryBound(to: CChar.self))
                unsafe format(pointers, lengths: arguments.map(\.count) + [last.count], to: &output)
            }
        }
    }

    /// Calls `body` with pointers to all arguments, which are valid until it returns.
    private static func borrow(
        _ arguments: ArraySlice<[UInt8]>, _ pointers: inout [UnsafePointer<CChar>?],
        _ body: (inout [UnsafePointer<CChar>?]) -> Void
    ) {
        guard let first = arguments.first else { return unsafe body(&pointers) }
        unsafe first.withUnsafeBytes { bytes in
            unsafe pointers.append(bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
            unsafe borrow(arguments.dropFirst(), &pointers, body)
        }
    }

    private static func format(
        _ pointers: [UnsafePointer<CChar>?], lengths: [Int], to output: inout [UInt8]
    ) {
        precondition((1...argumentCountMax).contains(lengths.count), "a command has a name and few arguments")
        precondition(lengths.reduce(0, +) <= argumentBytesMax, "values are small")
        // hiredis copies from no pointer that is nil; what an empty argument points at does not matter.
        unsafe withUnsafePointer(to: CChar(0)) { nowhere in
            var pointers: [UnsafePointer<CChar>?] = unsafe pointers.map { unsafe $0 ?? nowhere }
            var command: UnsafeMutablePointer<CChar>?
            let count = unsafe redisFormatCommandArgv(&command, CInt(lengths.count), &pointers, lengths)
            guard count > 0, let command = unsafe command else {
                preconditionFailure("there is no memory for a command")
            }
            defer { unsafe redisFreeCommand(command) }
            unsafe output.append(contentsOf: UnsafeRawBufferPointer(start: command, count: Int(count)))
        }
    }
}
