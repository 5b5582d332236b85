kOne kTwo
