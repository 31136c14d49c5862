# libcairn.so, libcairn.a, install rules, the command: filled with capi.
