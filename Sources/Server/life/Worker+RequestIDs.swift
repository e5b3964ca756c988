import Accounts
import Forwarding
import Settings

/// The ID of a request, where it is read.
extension Worker {
    func text(of id: RequestID?) -> String? { id.map { shared.requestIDs.text(of: $0) } }

    /// Logs what happens to one request, behind its ID. Costs a load and a comparison if the category is off.
    @inline(__always)
    func debug(_ category: LogCategory, _ id: RequestID?, _ text: @autoclosure () -> String) {
        shared.debug(category, id, text())
    }
}

extension Shared {
    /// See `Worker.debug`.
    @inline(__always)
    func debug(_ category: LogCategory, _ id: RequestID?, _ text: @autoclosure () -> String) {
        Diagnostics.debug(category, id.map { "\(requestIDs.text(of: $0)) \(text())" } ?? text())
    }
}
