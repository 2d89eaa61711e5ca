; The direct entry: a function of Python's C interface that runs a kernel on samples, without NumPy's machinery.
;
; abi.py describes it (Entry, Word, Offset) and has the numbers that stand here by their names, after a dollar sign.
; %words is the table of all addresses and shapes that the code needs. %batch is 1 if there is a leading dimension,
; otherwise 0. %data and %results are tables of pointers, one per array and one per new result.

declare i32 @kt_fetestexcept(i32)
declare i32 @kt_feclearexcept(i32)

; Return whether an array has the type, the flags and the shape of array k; store the address of its data.
define internal i1 @take(ptr %words, ptr %array, i64 %k, i64 %batch, ptr %samples, i32 %flags, ptr %data) {
entry:
  %type_at = getelementptr i8, ptr %array, i64 $Offset.TYPE
  %type = load ptr, ptr %type_at
  %array_type_at = getelementptr i64, ptr %words, i64 $Word.ARRAY_TYPE
  %array_type = load ptr, ptr %array_type_at
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %check_dtype, label %no
check_dtype:
  %dtype_at = getelementptr i8, ptr %array, i64 $Offset.DTYPE
  %dtype = load ptr, ptr %dtype_at
  %number_at = getelementptr i8, ptr %dtype, i64 $Offset.TYPE_NUMBER
  %number = load i32, ptr %number_at
  %is_double = icmp eq i32 %number, $NPY_DOUBLE
  %order_at = getelementptr i8, ptr %dtype, i64 $Offset.BYTE_ORDER
  %order = load i8, ptr %order_at
  %is_native = icmp eq i8 %order, $NATIVE
  %is_plain = and i1 %is_double, %is_native
  %flags_at = getelementptr i8, ptr %array, i64 $Offset.FLAGS
  %own_flags = load i32, ptr %flags_at
  %common = and i32 %own_flags, %flags
  %is_dense = icmp eq i32 %common, %flags
  %suits = and i1 %is_plain, %is_dense
  br i1 %suits, label %check_dimensions, label %no
check_dimensions:
  %shapes = getelementptr i64, ptr %words, i64 $SHAPES
  %own_shape = getelementptr [$SHAPE_WORDS x i64], ptr %shapes, i64 %k
  %core = load i64, ptr %own_shape
  %wanted = getelementptr i64, ptr %own_shape, i64 1
  %dimensions = add i64 %core, %batch
  %ndim_at = getelementptr i8, ptr %array, i64 $Offset.NDIM
  %ndim32 = load i32, ptr %ndim_at
  %ndim = sext i32 %ndim32 to i64
  %has_dimensions = icmp eq i64 %ndim, %dimensions
  br i1 %has_dimensions, label %check_lead, label %no
check_lead:
  %shape_at = getelementptr i8, ptr %array, i64 $Offset.SHAPE
  %shape = load ptr, ptr %shape_at
  %leads = icmp eq i64 %batch, 1
  br i1 %leads, label %compare_lead, label %lengths
compare_lead:
  %lead = load i64, ptr %shape
  %n = load i64, ptr %samples
  %has_samples = icmp eq i64 %lead, %n
  br i1 %has_samples, label %lengths, label %no
lengths:
  %core_shape = getelementptr i64, ptr %shape, i64 %batch
  br label %next
next:
  %d = phi i64 [ 0, %lengths ], [ %after, %compare ]
  %more = icmp slt i64 %d, %core
  br i1 %more, label %compare, label %yes
compare:
  %length_at = getelementptr i64, ptr %core_shape, i64 %d
  %length = load i64, ptr %length_at
  %wanted_at = getelementptr i64, ptr %wanted, i64 %d
  %wanted_length = load i64, ptr %wanted_at
  %same = icmp eq i64 %length, %wanted_length
  %after = add i64 %d, 1
  br i1 %same, label %next, label %no
yes:
  %address_at = getelementptr i8, ptr %array, i64 $Offset.DATA
  %address = load ptr, ptr %address_at
  %place = getelementptr ptr, ptr %data, i64 %k
  store ptr %address, ptr %place
  ret i1 true
no:
  ret i1 false
}

; Return the number of bytes of array k.
define internal i64 @size(ptr %words, i64 %k, ptr %samples) {
entry:
  %steps = getelementptr i64, ptr %words, i64 $STEPS
  %row_at = getelementptr i64, ptr %steps, i64 %k
  %row = load i64, ptr %row_at
  %n = load i64, ptr %samples
  %size = mul i64 %row, %n
  ret i64 %size
}

; Return whether array k is apart from all arrays before it.
define internal i1 @apart(ptr %words, i64 %k, ptr %samples, ptr %data) {
entry:
  %first_at = getelementptr i64, ptr %data, i64 %k
  %first = load i64, ptr %first_at
  %size = call i64 @size(ptr %words, i64 %k, ptr %samples)
  %last = add i64 %first, %size
  br label %next
next:
  %j = phi i64 [ 0, %entry ], [ %after, %compare ]
  %more = icmp slt i64 %j, %k
  br i1 %more, label %compare, label %yes
compare:
  %other_at = getelementptr i64, ptr %data, i64 %j
  %other = load i64, ptr %other_at
  %other_size = call i64 @size(ptr %words, i64 %j, ptr %samples)
  %other_last = add i64 %other, %other_size
  %before = icmp ule i64 %last, %other
  %behind = icmp ule i64 %other_last, %first
  %is_apart = or i1 %before, %behind
  %after = add i64 %j, 1
  br i1 %is_apart, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Return the address of the arrays of the only option, `out`: a tuple, or one array for one result; null for others.
define internal ptr @out_items(ptr %words, ptr %names, ptr %out_at) {
entry:
  %options_at = getelementptr i8, ptr %names, i64 $Offset.SIZE
  %options = load i64, ptr %options_at
  %is_one = icmp eq i64 %options, 1
  br i1 %is_one, label %check_name, label %no
check_name:
  %name_at = getelementptr i8, ptr %names, i64 $ITEMS
  %name = load ptr, ptr %name_at
  %out_name_at = getelementptr i64, ptr %words, i64 $Word.NAME_OUT
  %out_name = load ptr, ptr %out_name_at
  %is_out = icmp eq ptr %name, %out_name
  br i1 %is_out, label %check_type, label %no
check_type:
  %outputs_at = getelementptr i64, ptr %words, i64 $Word.OUTPUTS
  %outputs = load i64, ptr %outputs_at
  %out = load ptr, ptr %out_at
  %type_at = getelementptr i8, ptr %out, i64 $Offset.TYPE
  %type = load ptr, ptr %type_at
  %tuple_type_at = getelementptr i64, ptr %words, i64 $Word.TUPLE_TYPE
  %tuple_type = load ptr, ptr %tuple_type_at
  %is_tuple = icmp eq ptr %type, %tuple_type
  br i1 %is_tuple, label %several, label %single
several:
  %count_at = getelementptr i8, ptr %out, i64 $Offset.SIZE
  %count = load i64, ptr %count_at
  %has_all = icmp eq i64 %count, %outputs
  %items = getelementptr i8, ptr %out, i64 $ITEMS
  br i1 %has_all, label %found, label %no
single:
  %has_one = icmp eq i64 %outputs, 1
  br i1 %has_one, label %found, label %no
found:
  %place = phi ptr [ %items, %several ], [ %out_at, %single ]
  ret ptr %place
no:
  ret ptr null
}

; Return whether given results suit: writeable arrays of the right shapes, apart from the arguments and each other.
define internal i1 @take_results(ptr %words, ptr %items, i64 %batch, ptr %samples, ptr %data) {
entry:
  %inputs_at = getelementptr i64, ptr %words, i64 $Word.INPUTS
  %inputs = load i64, ptr %inputs_at
  %outputs_at = getelementptr i64, ptr %words, i64 $Word.OUTPUTS
  %outputs = load i64, ptr %outputs_at
  br label %next
next:
  %j = phi i64 [ 0, %entry ], [ %after, %compare ]
  %more = icmp slt i64 %j, %outputs
  br i1 %more, label %one, label %yes
one:
  %k = add i64 %j, %inputs
  %array_at = getelementptr ptr, ptr %items, i64 %j
  %array = load ptr, ptr %array_at
  %taken = call i1 @take(ptr %words, ptr %array, i64 %k, i64 %batch, ptr %samples, i32 $WRITEABLE, ptr %data)
  br i1 %taken, label %compare, label %no
compare:
  %is_apart = call i1 @apart(ptr %words, i64 %k, ptr %samples, ptr %data)
  %after = add i64 %j, 1
  br i1 %is_apart, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Make the arrays for the results; return whether there was memory for all.
define internal i1 @make_results(ptr %words, i64 %batch, ptr %samples, ptr %data, ptr %results) {
entry:
  %shape = alloca [$SHAPE_WORDS x i64], align 64
  %inputs_at = getelementptr i64, ptr %words, i64 $Word.INPUTS
  %inputs = load i64, ptr %inputs_at
  %outputs_at = getelementptr i64, ptr %words, i64 $Word.OUTPUTS
  %outputs = load i64, ptr %outputs_at
  %array_type_at = getelementptr i64, ptr %words, i64 $Word.ARRAY_TYPE
  %array_type = load ptr, ptr %array_type_at
  %new_at = getelementptr i64, ptr %words, i64 $Word.NEW_ARRAY
  %new = load ptr, ptr %new_at
  %shapes = getelementptr i64, ptr %words, i64 $SHAPES
  %n = load i64, ptr %samples
  store i64 %n, ptr %shape
  %core_shape = getelementptr i64, ptr %shape, i64 1
  %skipped = sub i64 1, %batch
  %own_shape = getelementptr i64, ptr %shape, i64 %skipped
  br label %next
next:
  %j = phi i64 [ 0, %entry ], [ %after, %keep ]
  %more = icmp slt i64 %j, %outputs
  br i1 %more, label %one, label %yes
one:
  %k = add i64 %j, %inputs
  %wanted_at = getelementptr [$SHAPE_WORDS x i64], ptr %shapes, i64 %k
  %core = load i64, ptr %wanted_at
  %wanted = getelementptr i64, ptr %wanted_at, i64 1
  %lengths = load <$DIMENSIONS x i64>, ptr %wanted, align 8
  store <$DIMENSIONS x i64> %lengths, ptr %core_shape, align 8
  %ndim = add i64 %core, %batch
  %ndim32 = trunc i64 %ndim to i32
  %array = call ptr %new(ptr %array_type, i32 %ndim32, ptr %own_shape, i32 $NPY_DOUBLE,
    ptr null, ptr null, i32 0, i32 0, ptr null)
  %is_made = icmp ne ptr %array, null
  br i1 %is_made, label %keep, label %no
keep:
  %result_at = getelementptr ptr, ptr %results, i64 %j
  store ptr %array, ptr %result_at
  %address_at = getelementptr i8, ptr %array, i64 $Offset.DATA
  %address = load ptr, ptr %address_at
  %place = getelementptr ptr, ptr %data, i64 %k
  store ptr %address, ptr %place
  %after = add i64 %j, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Run the kernel, without Python's lock on many samples; return whether there is nothing that NumPy has to report.
define internal i1 @run(ptr %words, ptr %samples, ptr %data) {
entry:
  %kernel_at = getelementptr i64, ptr %words, i64 $Word.KERNEL
  %kernel = load ptr, ptr %kernel_at
  %last_at = getelementptr i64, ptr %words, i64 $Word.LAST
  %last = load ptr, ptr %last_at
  %steps = getelementptr i64, ptr %words, i64 $STEPS
  %counts_at = getelementptr i64, ptr %words, i64 $Word.COUNTS
  %counts = load ptr, ptr %counts_at
  %bad_at = getelementptr i64, ptr %counts, i64 1
  %before = load i64, ptr %bad_at
  %old_flags = call i32 @kt_fetestexcept(i32 $REPORTED_FLAGS)
  %is_raised = icmp ne i32 %old_flags, 0
  br i1 %is_raised, label %clear, label %start
clear:  ; as NumPy does before a ufunc
  %cleared = call i32 @kt_feclearexcept(i32 $ALL_FLAGS)
  br label %start
start:
  %n = load i64, ptr %samples
  %is_long = icmp sge i64 %n, $SHARED
  br i1 %is_long, label %alone, label %locked
alone:
  %save_at = getelementptr i64, ptr %words, i64 $Word.SAVE_THREAD
  %save = load ptr, ptr %save_at
  %restore_at = getelementptr i64, ptr %words, i64 $Word.RESTORE_THREAD
  %restore = load ptr, ptr %restore_at
  %state = call ptr %save()
  call void %kernel(ptr %data, ptr %samples, ptr %steps, ptr %last)
  call void %restore(ptr %state)
  br label %done
locked:
  call void %kernel(ptr %data, ptr %samples, ptr %steps, ptr %last)
  br label %done
done:
  %bad = load i64, ptr %bad_at
  %is_finite = icmp eq i64 %bad, %before
  %flags = call i32 @kt_fetestexcept(i32 $REPORTED_FLAGS)
  %is_clear = icmp eq i32 %flags, 0
  ; On machines whose flags are unknown, every call is left to NumPy, which reads them itself.
  %is_known = icmp ne i32 $REPORTED_FLAGS, 0
  %is_silent = and i1 %is_clear, %is_known
  %is_fine = and i1 %is_finite, %is_silent
  ret i1 %is_fine
}

; Return result j, which the table of results no longer owns; an array without dimensions becomes a scalar.
define internal ptr @handed_over(ptr %words, ptr %results, i64 %j) {
entry:
  %as_result_at = getelementptr i64, ptr %words, i64 $Word.AS_RESULT
  %as_result = load ptr, ptr %as_result_at
  %place = getelementptr ptr, ptr %results, i64 %j
  %array = load ptr, ptr %place
  store ptr null, ptr %place
  %result = call ptr %as_result(ptr %array)
  ret ptr %result
}

; Return one result by itself, several as a tuple; null if there is no memory.
define internal ptr @new_results(ptr %words, ptr %results) {
entry:
  %outputs_at = getelementptr i64, ptr %words, i64 $Word.OUTPUTS
  %outputs = load i64, ptr %outputs_at
  %is_one = icmp eq i64 %outputs, 1
  br i1 %is_one, label %single, label %several
single:
  %only = call ptr @handed_over(ptr %words, ptr %results, i64 0)
  ret ptr %only
several:
  %new_at = getelementptr i64, ptr %words, i64 $Word.NEW_TUPLE
  %new = load ptr, ptr %new_at
  %set_at = getelementptr i64, ptr %words, i64 $Word.SET_ITEM
  %set = load ptr, ptr %set_at
  %tuple = call ptr %new(i64 %outputs)
  %is_made = icmp ne ptr %tuple, null
  br i1 %is_made, label %next, label %no
next:
  %j = phi i64 [ 0, %several ], [ %after, %keep ]
  %more = icmp slt i64 %j, %outputs
  br i1 %more, label %one, label %yes
one:
  %result = call ptr @handed_over(ptr %words, ptr %results, i64 %j)
  %is_there = icmp ne ptr %result, null
  br i1 %is_there, label %keep, label %half
keep:
  %done = call i32 %set(ptr %tuple, i64 %j, ptr %result)
  %after = add i64 %j, 1
  br label %next
half:
  %release_at = getelementptr i64, ptr %words, i64 $Word.RELEASE
  %release = load ptr, ptr %release_at
  call void %release(ptr %tuple)
  br label %no
yes:
  ret ptr %tuple
no:
  ret ptr null
}

; Release the results that were made; the others are null, which Py_DecRef ignores.
define internal void @release_all(ptr %words, ptr %results) {
entry:
  %release_at = getelementptr i64, ptr %words, i64 $Word.RELEASE
  %release = load ptr, ptr %release_at
  br label %next
next:
  %j = phi i64 [ 0, %entry ], [ %after, %one ]
  %more = icmp slt i64 %j, $ARRAYS
  br i1 %more, label %one, label %done
one:
  %place = getelementptr ptr, ptr %results, i64 %j
  %result = load ptr, ptr %place
  call void %release(ptr %result)
  %after = add i64 %j, 1
  br label %next
done:
  ret void
}

; The function that Python calls, of the kind METH_FASTCALL | METH_KEYWORDS: `count` arrays, then values by `names`.
define ptr @entry(ptr %self, ptr %args, i64 %count, ptr %names) {
entry:
  %data = alloca [$ARRAYS x ptr], align 64
  %results = alloca [$ARRAYS x ptr], align 64
  %samples = alloca i64
  %table_at = getelementptr i8, ptr %self, i64 $ITEMS
  %table = load ptr, ptr %table_at
  %words_at = getelementptr i8, ptr %table, i64 $Offset.DATA
  %words = load ptr, ptr %words_at
  store <$ARRAYS x i64> zeroinitializer, ptr %results, align 64
  %constants_at = getelementptr i64, ptr %words, i64 $POINTERS
  %constants = load <$ARRAYS x i64>, ptr %constants_at, align 8
  store <$ARRAYS x i64> %constants, ptr %data, align 64
  %given_at = getelementptr i64, ptr %words, i64 $Word.GIVEN
  %given = load i64, ptr %given_at
  %has_all = icmp eq i64 %count, %given
  %has_any = icmp sgt i64 %given, 0
  %is_call = and i1 %has_all, %has_any
  br i1 %is_call, label %check_first, label %fallback
check_first:
  %first = load ptr, ptr %args
  %type_at = getelementptr i8, ptr %first, i64 $Offset.TYPE
  %type = load ptr, ptr %type_at
  %array_type_at = getelementptr i64, ptr %words, i64 $Word.ARRAY_TYPE
  %array_type = load ptr, ptr %array_type_at
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %find_batch, label %fallback
find_batch:
  %ndim_at = getelementptr i8, ptr %first, i64 $Offset.NDIM
  %ndim32 = load i32, ptr %ndim_at
  %ndim = sext i32 %ndim32 to i64
  %shapes = getelementptr i64, ptr %words, i64 $SHAPES
  %core = load i64, ptr %shapes
  %batch = sub i64 %ndim, %core
  %is_plain = icmp ult i64 %batch, 2
  br i1 %is_plain, label %count_samples, label %fallback
count_samples:
  store i64 1, ptr %samples
  %leads = icmp eq i64 %batch, 1
  br i1 %leads, label %read_lead, label %check_samples
read_lead:
  %shape_at = getelementptr i8, ptr %first, i64 $Offset.SHAPE
  %shape = load ptr, ptr %shape_at
  %lead = load i64, ptr %shape
  store i64 %lead, ptr %samples
  br label %check_samples
check_samples:
  %n = load i64, ptr %samples
  %is_some = icmp sgt i64 %n, 0
  br i1 %is_some, label %next, label %fallback
next:
  %k = phi i64 [ 0, %check_samples ], [ %after, %one ]
  %more = icmp slt i64 %k, %given
  br i1 %more, label %one, label %all
one:
  %array_at = getelementptr ptr, ptr %args, i64 %k
  %array = load ptr, ptr %array_at
  %taken = call i1 @take(ptr %words, ptr %array, i64 %k, i64 %batch, ptr %samples, i32 $DENSE, ptr %data)
  %after = add i64 %k, 1
  br i1 %taken, label %next, label %fallback
all:
  %out_at = getelementptr ptr, ptr %args, i64 %count
  %is_new = icmp eq ptr %names, null
  br i1 %is_new, label %make, label %find_out
find_out:
  %items = call ptr @out_items(ptr %words, ptr %names, ptr %out_at)
  %has_out = icmp ne ptr %items, null
  br i1 %has_out, label %take_out, label %fallback
take_out:
  %suits = call i1 @take_results(ptr %words, ptr %items, i64 %batch, ptr %samples, ptr %data)
  br i1 %suits, label %run, label %fallback
make:
  %made = call i1 @make_results(ptr %words, i64 %batch, ptr %samples, ptr %data, ptr %results)
  br i1 %made, label %run, label %fail
run:
  %given_items = phi ptr [ %items, %take_out ], [ null, %make ]
  %is_fine = call i1 @run(ptr %words, ptr %samples, ptr %data)
  br i1 %is_fine, label %return, label %leave
return:
  br i1 %is_new, label %return_new, label %return_given
return_given:  ; one array by itself also if it was given in a tuple
  %outputs_at = getelementptr i64, ptr %words, i64 $Word.OUTPUTS
  %outputs = load i64, ptr %outputs_at
  %is_one = icmp eq i64 %outputs, 1
  %item = load ptr, ptr %given_items
  %out = load ptr, ptr %out_at
  %given_result = select i1 %is_one, ptr %item, ptr %out
  %retain_at = getelementptr i64, ptr %words, i64 $Word.RETAIN
  %retain = load ptr, ptr %retain_at
  call void %retain(ptr %given_result)
  ret ptr %given_result
return_new:
  %result = call ptr @new_results(ptr %words, ptr %results)
  %is_there = icmp ne ptr %result, null
  br i1 %is_there, label %done, label %fail
done:
  ret ptr %result
leave:
  call void @release_all(ptr %words, ptr %results)
  br label %fallback
fallback:
  %vectorcall_at = getelementptr i64, ptr %words, i64 $Word.VECTORCALL
  %vectorcall = load ptr, ptr %vectorcall_at
  %function_at = getelementptr i64, ptr %words, i64 $Word.FALLBACK
  %function = load ptr, ptr %function_at
  %found = call ptr %vectorcall(ptr %function, ptr %args, i64 %count, ptr %names)
  ret ptr %found
fail:
  call void @release_all(ptr %words, ptr %results)
  ret ptr null
}
