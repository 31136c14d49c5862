/* Export and attribute macros of cairn.h. Nothing else. */
#ifndef CAIRN_CONFIG_H_
#define CAIRN_CONFIG_H_

#if defined(CAIRN_CDEF) /* the LuaJIT binding preprocesses the header into plain declarations */
#define CAIRN_API
#define CAIRN_NODISCARD
#else
#if defined(CAIRN_INTO_ARCHIVE) /* the sources of libcairn.a: what is linked with it exports none of it */
#define CAIRN_API __attribute__((visibility("hidden")))
#else
#define CAIRN_API __attribute__((visibility("default")))
#endif
#define CAIRN_NODISCARD __attribute__((warn_unused_result))
#endif

#endif /* CAIRN_CONFIG_H_ */
