import Foundation

/// The executable `larder`. It is beside the test program, because both are products of this package; the variable
/// LARDER_EXECUTABLE names another one.
package let larderExecutable: String = {
    if let path = ProcessInfo.processInfo.environment["LARDER_EXECUTABLE"] { return path }
    let bundle = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return "\((bundle as NSString).deletingLastPathComponent)/larder"
}()

/// The port in the line `larder 0.1.0 serves on 127.0.0.1:PORT`. Nil until the line is complete.
package func readyPort(in output: String) -> UInt16? {
    for line in output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    where line.hasPrefix("larder ") && line.contains(" serves on 127.0.0.1:") {
        return line.split(separator: ":").last.flatMap { UInt16($0) }
    }
    return nil
}

extension Program {
    /// Starts `larder serve` with a configuration, and does not wait until it serves.
    /// - Parameters:
    ///   - configuration: it is written to `larder.yaml` in the directory. The output goes to `larder.out` and `larder.err` there.
    ///   - wrapper: words before those of the program, such as a program that starts it with a limit.
    package static func startLarder(
        in directory: String, configuration: String, wrapper: [String] = []
    ) throws -> Program {
        let file = "\(directory)/larder.yaml"
        try configuration.write(toFile: file, atomically: true, encoding: .utf8)
        let logs = "\(directory)/larder"
        // The line that says that it serves must be the one of this process.
        try? FileManager.default.removeItem(atPath: "\(logs).out")
        return try Program(wrapper + [larderExecutable, "serve", "--config", file], logs: logs)
    }

    /// Waits until the program serves, and returns its port. Blocks.
    package func waitUntilServing(within seconds: Double = 60) throws -> UInt16 {
        try eventually("larder serves; it printed: \(output)\(errors)", within: seconds) {
            if let exitStatus { throw Failure(description: "larder ended with status \(exitStatus): \(errors)") }
            return readyPort(in: output)
        }
    }
}
