/// What comes of reading the files that a configuration names: the faults, and what an administrator should know.
///
/// `serve` and `check` run the same readers. `serve` stops at the first fault, `check` goes on and collects every fault.
package struct Preparation {
    package private(set) var faults: [ProvisioningFault] = []
    /// What is doubtful and does not keep Larder from starting.
    package private(set) var remarks: [ProvisioningFault] = []
    /// Whether faults are collected. Otherwise the first one is thrown.
    let isCheck: Bool

    private init(isCheck: Bool) { self.isCheck = isCheck }

    /// Collects every fault. The readers throw nothing, and return nil where a fault leaves no value.
    package static var check: Preparation { Preparation(isCheck: true) }

    /// Reads, and throws the first fault.
    ///
    /// - Parameter read: returns a value, or throws, if it attempts everything with the preparation that it gets.
    static func throwing<Value>(
        _ read: (inout Preparation) throws(ProvisioningFault) -> Value?
    ) throws(ProvisioningFault) -> Value {
        var preparation = Preparation(isCheck: false)
        guard let value = try read(&preparation) else { preconditionFailure("a fault was not thrown") }
        return value
    }

    /// Returns what `read` returns. Its fault is thrown, or collected: nil then.
    @discardableResult mutating func attempt<Value>(
        _ read: () throws(ProvisioningFault) -> Value
    ) throws(ProvisioningFault) -> Value? {
        do throws(ProvisioningFault) { return try read() } catch {
            guard isCheck else { throw error }
            add(error)
            return nil
        }
    }

    mutating func remark(_ remark: ProvisioningFault) { remarks.append(remark) }

    /// Two settings that name the same file may find the same fault.
    mutating func add(_ fault: ProvisioningFault) {
        if !faults.contains(where: { $0.key == fault.key && $0.message == fault.message }) { faults.append(fault) }
    }
}
